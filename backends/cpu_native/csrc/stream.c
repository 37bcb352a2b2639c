/* From which sizes on results go past the caches: what the processor says of its caches decides. */
#include "stream.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>

#define CACHES 0x8000001d /* of AMD's processors */

static int64_t kept = 0; /* bytes of all arrays of a call up to which the third cache serves them */

/* AMD's third cache holds what leaves the second, and writing into it is no slower than past it.  Its size
   is asked of the processor: the C library takes that of all of them together. */
__attribute__((constructor)) static void look(void) {
    unsigned a, b, c, d;
    __builtin_cpu_init();
    if (__builtin_cpu_is("amd") && __get_cpuid_count(CACHES, 3, &a, &b, &c, &d) && (a & 31))
        kept = (int64_t)((b >> 22) + 1) * ((b >> 12 & 1023) + 1) * ((b & 4095) + 1) * ((int64_t)c + 1) / 2;
}

int is_streamed(int64_t result, int64_t operands) {
    return result >= STREAMED && (operands > INT64_MAX - result || result + operands > kept);
}
#else
int is_streamed(int64_t result, int64_t operands) {
    (void)result, (void)operands;
    return 0;
}
#endif
