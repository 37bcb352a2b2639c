#pragma once

#include <flambeau/dispatch.h>
