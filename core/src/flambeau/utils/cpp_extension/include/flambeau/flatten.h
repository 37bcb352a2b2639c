// Several tensors as one vector, and back.
#pragma once

#include <flambeau/names_of_torch.h>

namespace torch::utils {

inline at::Tensor flatten_dense_tensors(at::TensorList tensors) {
  std::vector<at::Tensor> flat;
  for (const at::Tensor& tensor : tensors) flat.push_back(tensor.reshape({-1}));
  return at::cat(flat);
}

// Parts of `flat` in the sizes of the tensors.
inline std::vector<at::Tensor> unflatten_dense_tensors(const at::Tensor& flat,
                                                       at::TensorList tensors) {
  std::vector<at::Tensor> parts;
  int64_t start = 0;
  for (const at::Tensor& tensor : tensors) {
    parts.push_back(flat.narrow(0, start, tensor.numel()).view(tensor.sizes()));
    start += tensor.numel();
  }
  return parts;
}

}  // namespace torch::utils
