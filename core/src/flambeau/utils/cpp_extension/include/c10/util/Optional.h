#pragma once

#include <flambeau/array_ref.h>
