"""Operations in which the processes of a group exchange tensors."""
