/* The links of chains for vectors that lie as FORM says.  LOAD(p, i) is vector number i of the eight in memory,
   and STORE(p, i, x) puts it there. */
#define LINK(name) AVX512 static void FORMED(name)(PARAMETERS)
#define GO_ON return l[1].work[FORM](l + 1, tile, offset, v0, v1, v2, v3, v4, v5, v6, v7)
#define EACH_OF_EIGHT(DO, ...)                                                                                  \
    DO(v0, 0, __VA_ARGS__) DO(v1, 1, __VA_ARGS__) DO(v2, 2, __VA_ARGS__) DO(v3, 3, __VA_ARGS__)                 \
    DO(v4, 4, __VA_ARGS__) DO(v5, 5, __VA_ARGS__) DO(v6, 6, __VA_ARGS__) DO(v7, 7, __VA_ARGS__)

/* An operand: what the link before gave, what lies in memory, a number, and the products of these with one. */
#define HELD(v, i, p) v
#define READ(v, i, p) LOAD(p, i)
#define NUMBER(v, i, p) p##_number
#define SCALED(v, i, p) (LOAD(p, i) * scale)
#define TIMES(v, i, p) (v * scale)

#define OF_ONE(v, i, X, formula) { const __m512 x = X(v, i, second); v = formula; }
#define OF_TWO(v, i, G, X, formula) { const __m512 g = G(v, i, first), x = X(v, i, second); v = formula; }
#define PUT(v, i, p) STORE(p, i, v);
#define PUT_PAST(v, i, p) _mm512_stream_ps(p + 16 * i, v);
#define OPERANDS                                                                                 \
    const char *at_first = tile->at[l->first], *at_second = tile->at[l->second];                 \
    const float *first = (const float *)(const void *)(at_first + offset);                       \
    const float *second = (const float *)(const void *)(at_second + offset);                     \
    const __m512 first_number = _mm512_set1_ps(*(const float *)(const void *)at_first);          \
    const __m512 second_number = _mm512_set1_ps(*(const float *)(const void *)at_second);        \
    const __m512 scale = _mm512_set1_ps(*(const float *)(const void *)tile->at[l->scale]);     \
    (void)first, (void)second, (void)first_number, (void)second_number, (void)scale
#define KEEP                                                                     \
    float *to = (float *)(void *)(tile->at[l->to] + offset);                     \
    if (FORM == WHOLE && tile->streams[l->to] && ((uintptr_t)to & 63) == 0) {    \
        EACH_OF_EIGHT(PUT_PAST, to)                                              \
    } else {                                                                     \
        EACH_OF_EIGHT(PUT, to)                                                   \
    }
#define BOTH(name, DO, ...)                                                                 \
    LINK(name##_passed) { OPERANDS; EACH_OF_EIGHT(DO, __VA_ARGS__) GO_ON; }                 \
    LINK(name##_kept) { OPERANDS; EACH_OF_EIGHT(DO, __VA_ARGS__) KEEP GO_ON; }
#define ONE(name, formula)                          \
    BOTH(name##_of_held, OF_ONE, HELD, formula)     \
    BOTH(name##_of_read, OF_ONE, READ, formula)
#define TWO(name, formula)                                      \
    BOTH(name##_held_read, OF_TWO, HELD, READ, formula)         \
    BOTH(name##_held_number, OF_TWO, HELD, NUMBER, formula)       \
    BOTH(name##_read_held, OF_TWO, READ, HELD, formula)         \
    BOTH(name##_read_read, OF_TWO, READ, READ, formula)         \
    BOTH(name##_read_number, OF_TWO, READ, NUMBER, formula)       \
    BOTH(name##_number_held, OF_TWO, NUMBER, HELD, formula)       \
    BOTH(name##_number_read, OF_TWO, NUMBER, READ, formula)
#define SUM(name, formula)                                      \
    TWO(name, formula)                                          \
    BOTH(name##_scaled_held, OF_TWO, SCALED, HELD, formula)     \
    BOTH(name##_held_scaled, OF_TWO, HELD, SCALED, formula)     \
    BOTH(name##_times_read, OF_TWO, TIMES, READ, formula)       \
    BOTH(name##_read_times, OF_TWO, READ, TIMES, formula)
FUNCTIONS(ONE, TWO, SUM)

LINK(end) {
    (void)l, (void)tile, (void)offset;
    (void)v0, (void)v1, (void)v2, (void)v3, (void)v4, (void)v5, (void)v6, (void)v7;
}

#undef LINK
#undef GO_ON
#undef EACH_OF_EIGHT
#undef HELD
#undef READ
#undef NUMBER
#undef SCALED
#undef TIMES
#undef OF_ONE
#undef OF_TWO
#undef PUT
#undef PUT_PAST
#undef OPERANDS
#undef KEEP
#undef BOTH
#undef ONE
#undef TWO
#undef SUM
