// What C++ extensions of PyTorch include.
#pragma once

#include <flambeau/names_of_torch.h>
