"""Everything that writes into a tensor: in-place ops, ``out=``, copies between devices."""
