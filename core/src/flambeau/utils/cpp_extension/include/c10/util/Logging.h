#pragma once

#include <flambeau/error.h>
