#pragma once

#include <flambeau/vec.h>
