#pragma once

#include <flambeau/flatten.h>
