"""Function transforms: levels of tensors that are backends of their own."""
