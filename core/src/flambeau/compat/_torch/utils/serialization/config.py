"""Defaults of `load` and `save`, which may be set and are not asked."""

__all__ = ["load", "save"]


class load:  # noqa: N801 - the name that programs write
    """Files are read, not mapped."""

    mmap = False
    endianness = None
    calculate_storage_offsets = False


class save:  # noqa: N801 - the name that programs write
    """Checksums are always written."""

    compute_crc32 = True
    use_pinned_memory_for_d2h = False
    storage_alignment = 64
