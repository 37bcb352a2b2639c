#pragma once

#include <flambeau/options.h>
