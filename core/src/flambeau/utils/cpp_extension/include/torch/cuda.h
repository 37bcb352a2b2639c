#pragma once

#include <flambeau/cuda.h>
