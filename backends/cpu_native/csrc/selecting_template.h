/* The k-th smallest of the middle of (outer, n, inner), or the median, and where it is.  NaN are the largest; of equal
   elements the k-th is the one that a stable sort would put there. */

typedef struct {
    T *values;
    int64_t *places;
    const T *a;
    T *scratch;
    int64_t n, inner, k;
    int kind;
} NAME(Selection);

static int NAME(compare)(const void *a, const void *b) {
    const T x = *(const T *)a, y = *(const T *)b;
    return (x > y) - (x < y);
}

/* Moves the elements that come before `pivot` to the front; how many these are. */
#define PARTITION(name, relation)                             \
    INLINE int64_t NAME(name)(T *a, int64_t n, T pivot) {     \
        int64_t before = 0;                                   \
        for (int64_t i = 0; i < n; i++) {                     \
            const T x = a[i];                                 \
            a[i] = a[before];                                 \
            a[before] = x;                                    \
            before += x relation pivot;                       \
        }                                                     \
        return before;                                        \
    }
PARTITION(put_less, <)
PARTITION(put_up_to, <=)
#undef PARTITION

INLINE T NAME(middle)(T a, T b, T c) {
    const T low = a < b ? a : b, high = a < b ? b : a;
    return c < low ? low : c > high ? high : c;
}

/* The k-th smallest of n numbers, which are put in another order: Hoare's quickselect, and a sort of what is
   left where many rounds have not found it. */
static T NAME(kth)(T *a, int64_t n, int64_t k) {
    for (int rounds = 0; n > 1; rounds++) {
        if (rounds == 64) {
            qsort(a, (size_t)n, sizeof(T), NAME(compare));
            return a[k];
        }
        const T pivot = NAME(middle)(a[n / 4], a[n / 2], a[n - 1 - n / 4]);
        const int64_t less = NAME(put_less)(a, n, pivot);
        if (k < less) {
            n = less;
            continue;
        }
        const int64_t equal = NAME(put_up_to)(a + less, n - less, pivot);
        if (k < less + equal) return pivot;
        a += less + equal;
        n -= less + equal;
        k -= less + equal;
    }
    return a[0];
}

#if HAS_AVX512
/* The same of numbers of four bytes, by keys of the same order: of two zeros -0 comes first. */
AVX512 static T NAME(kth_by_key)(T *a, int64_t n, int64_t k) {
    const int is_float = (T)0.5 != 0;
    const uint32_t sign = 0x80000000u;
    T found;
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, a + i, sizeof bits);
        bits = is_float && (bits & sign) ? ~bits : bits ^ sign;
        memcpy(a + i, &bits, sizeof bits);
    }
    uint32_t key = kth_key(a, n, k);
    key = is_float && !(key & sign) ? ~key : key ^ sign;
    memset(&found, 0, sizeof found);
    memcpy(&found, &key, sizeof key);
    return found;
}
#endif

static T NAME(found_kth)(T *a, int64_t n, int64_t k) {
#if HAS_AVX512
    if (sizeof(T) == 4 && has_avx512()) return NAME(kth_by_key)(a, n, k);
#endif
    return NAME(kth)(a, n, k);
}

INLINE int64_t NAME(count_less)(const T *a, int64_t n, int64_t inner, T found) {
    int64_t less = 0;
    _Pragma("omp simd reduction(+ : less)") for (int64_t i = 0; i < n; i++) less += a[i * inner] < found;
    return less;
}
WIDE static int64_t NAME(count_less_of_row)(const T *a, int64_t n, T found) {
    return NAME(count_less)(a, n, 1, found);
}

static int64_t NAME(place_of_kth)(const NAME(Selection) * c, const T *a, T *scratch) {
    int64_t numbers = 0, k = c->k, place = 0;
    for (int64_t i = 0; i < c->n; i++) {
        const T x = a[i * c->inner];
        scratch[numbers] = x;
        numbers += !IS_NAN(x);
    }
    if (c->kind != KTH) k = c->kind == MEDIAN && numbers < c->n ? numbers : (numbers - 1) / 2;
    if (k >= numbers || !numbers) { /* the NaN of this number */
        for (int64_t i = 0, left = k - numbers; i < c->n; i++)
            if (IS_NAN(a[i * c->inner]) && left-- <= 0) return i;
        return 0;
    }
    const T found = NAME(found_kth)(scratch, numbers, k);
    const int64_t less = c->inner == 1 ? NAME(count_less_of_row)(a, c->n, found)
                                       : NAME(count_less)(a, c->n, c->inner, found);
    for (int64_t i = 0, left = k - less; i < c->n; i++) {
        if (a[i * c->inner] != found) continue;
        place = i;
        if (left-- <= 0) break;
    }
    return place;
}

static void NAME(select_step)(const void *context, int64_t begin, int64_t end) {
    const NAME(Selection) *c = context;
    for (int64_t i = begin; i < end; i++) {
        const T *a = c->a + i / c->inner * c->n * c->inner + i % c->inner;
        const int64_t place = NAME(place_of_kth)(c, a, c->scratch + i * c->n);
        c->places[i] = place;
        c->values[i] = a[place * c->inner];
    }
}

/* The most frequent elements, of several of these the smallest, and where the last is, by rows in ascending order:
   each NaN occurs once, and of nothing else the first is found. */
static void NAME(mode_step)(const void *context, int64_t begin, int64_t end) {
    const NAME(Selection) *c = context;
    for (int64_t i = begin; i < end; i++) {
        const T *a = c->a + i / c->inner * c->n * c->inner + i % c->inner, *ordered = c->scratch + i * c->n;
        int64_t longest = 0, place = 0;
        T found = ordered[0];
        for (int64_t first = 0, next; first < c->n; first = next) {
            const T x = ordered[first];
            for (next = first + 1; next < c->n && ordered[next] == x; next++) {}
            if (next - first > longest) {
                longest = next - first;
                found = x;
            }
        }
        if (IS_NAN(found)) {
            while (place < c->n - 1 && !IS_NAN(a[place * c->inner])) place++;
        } else {
            for (place = c->n - 1; place > 0 && a[place * c->inner] != found;) place--;
        }
        c->places[i] = place;
        c->values[i] = a[place * c->inner];
    }
}

/* The same of short rows, in any order, which are counted element by element. */
static void NAME(mode_few_step)(const void *context, int64_t begin, int64_t end) {
    const NAME(Selection) *c = context;
    for (int64_t i = begin; i < end; i++) {
        const T *a = c->a + i / c->inner * c->n * c->inner + i % c->inner;
        int64_t longest = 0, place = 0;
        T found = 0;
        for (int64_t j = 0; j < c->n; j++) {
            const T x = a[j * c->inner];
            int64_t count = 0, last = j;
            for (int64_t other = 0; other < c->n; other++) {
                const int is_equal = a[other * c->inner] == x;
                count += is_equal;
                last = is_equal ? other : last;
            }
            if (count > longest || (count == longest && count > 0 && x < found)) {
                longest = count;
                place = last;
                found = x;
            }
        }
        c->places[i] = place;
        c->values[i] = a[place * c->inner];
    }
}

static void NAME(mode)(const Args *k) {
    const int64_t outer = k->n[0], n = k->n[1], inner = k->n[2];
    const NAME(Selection) c = {k->p[0], k->p[1], k->p[3], k->p[2], n, inner, 0, KTH};
    if (n > 0 && inner > 0) split(NAME(mode_step), &c, outer * inner, team(k, outer * n * inner));
}

static void NAME(mode_few)(const Args *k) {
    const int64_t outer = k->n[0], n = k->n[1], inner = k->n[2];
    const NAME(Selection) c = {k->p[0], k->p[1], k->p[2], NULL, n, inner, 0, KTH};
    if (n > 0 && inner > 0) split(NAME(mode_few_step), &c, outer * inner, team(k, times(outer * inner * n, n)));
}

static void NAME(select)(const Args *k) {
    const int64_t outer = k->n[0], n = k->n[1], inner = k->n[2];
    const NAME(Selection) c = {k->p[0], k->p[1], k->p[3], k->p[2], n, inner, k->n[3], (int)k->n[4]};
    if (c.kind == KTH && (c.k < 0 || c.k >= n)) {
        *k->error = "a place out of range";
        return;
    }
    if (n > 0 && inner > 0) split(NAME(select_step), &c, outer * inner, team(k, outer * n * inner));
}

/* Short rows in order, and where their elements were: NaN are the largest, and equal elements keep their order. */
INLINE int NAME(precedes)(T x, T y, int descends) {
    if (descends) return x > y || (IS_NAN(x) && !IS_NAN(y));
    return x < y || (IS_NAN(y) && !IS_NAN(x));
}

static void NAME(sort_few_step)(const void *context, int64_t begin, int64_t end) {
    const NAME(Selection) *c = context;
    for (int64_t i = begin; i < end; i++) {
        const int64_t first = i / c->inner * c->n * c->inner + i % c->inner;
        T values[FEW_SORTED];
        int64_t places[FEW_SORTED];
        for (int64_t j = 0; j < c->n; j++) {
            const T x = c->a[first + j * c->inner];
            int64_t at = j;
            for (; at > 0 && NAME(precedes)(x, values[at - 1], c->kind); at--) {
                values[at] = values[at - 1];
                places[at] = places[at - 1];
            }
            values[at] = x;
            places[at] = j;
        }
        for (int64_t j = 0; j < c->n; j++) {
            c->values[first + j * c->inner] = values[j];
            c->places[first + j * c->inner] = places[j];
        }
    }
}

static void NAME(sort_few)(const Args *k) {
    const int64_t outer = k->n[0], n = k->n[1], inner = k->n[2];
    const NAME(Selection) c = {k->p[0], k->p[1], k->p[2], NULL, n, inner, 0, k->n[3] != 0};
    if (n > FEW_SORTED) {
        *k->failure = "rows are too long";
        return;
    }
    if (n > 0 && inner > 0) split(NAME(sort_few_step), &c, outer * inner, team(k, times(outer * inner * n, n)));
}
