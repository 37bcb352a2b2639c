#pragma once

#include <flambeau/names_of_torch.h>
