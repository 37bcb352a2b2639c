#pragma once

#include <flambeau/accumulate.h>
