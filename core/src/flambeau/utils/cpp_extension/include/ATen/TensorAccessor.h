#pragma once

#include <flambeau/accessor.h>
