#pragma once

#include <flambeau/half.h>
