#pragma once

#include <flambeau/parallel.h>
