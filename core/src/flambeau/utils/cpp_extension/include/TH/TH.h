#pragma once

#include <flambeau/th.h>
