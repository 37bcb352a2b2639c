#pragma once

#include <flambeau/checks.h>
#include <flambeau/names_of_torch.h>
