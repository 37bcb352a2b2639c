#pragma once

#include <flambeau/scalar_type.h>
