#pragma once

#include <flambeau/checks.h>
