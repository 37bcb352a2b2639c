/* Sequences of log-probabilities of type T. */

typedef struct {
    T *out;
    double *scratch; /* `room` numbers for each sequence */
    const T *y, *grad;
    const int64_t *targets, *inputs, *labels; /* the last two are lengths */
    int64_t time, count, classes, longest, blank, room, time_step, step;
    int zero_infinity;
} NAME(Ctc);

/* The scratch of one sequence. */
typedef struct {
    double *rows, *emitted, *skips, *betas, *share, *visited;
    int64_t *classes; /* of its labels */
    const T *y;
    int64_t length, labels, states, all; /* the last with those that fill a vector */
} NAME(Path);

/* Numbers for each state of the longest target, and for two more. */
static int64_t NAME(width_of)(int64_t longest) { return WHOLE(2 * longest + 1) + 2; }

/* Numbers of scratch for a sequence, of whose α so many rows are kept. */
static int64_t NAME(ctc_room)(int64_t rows, int64_t longest, int64_t classes) {
    if (longest > INT32_MAX) return INT64_MAX;
    const int64_t all = times(rows + 6, NAME(width_of)(longest));
    return all > INT64_MAX / 2 || classes > INT64_MAX / 2 ? INT64_MAX : all + classes;
}

/* Reads what is given of a sequence; 0 of lengths that another thread has changed since they were looked at. */
static int NAME(path_of)(const NAME(Ctc) *c, int64_t i, int64_t rows, NAME(Path) *p) {
    p->length = (int64_t)place_of(c->inputs + i), p->labels = (int64_t)place_of(c->labels + i);
    if (p->length < 0 || p->length > c->time || p->labels < 0 || p->labels > c->longest) return 0;
    const int64_t width = NAME(width_of)(c->longest);
    p->states = 2 * p->labels + 1, p->all = WHOLE(p->states);
    p->y = c->y + i * c->step;
    p->rows = c->scratch + i * c->room;
    p->emitted = p->rows + rows * width;
    p->skips = p->emitted + width;
    p->betas = p->skips + width;
    p->share = p->betas + 2 * width;
    p->classes = (int64_t *)(p->share + width);
    p->visited = p->share + 2 * width;
    for (int64_t j = 0; j < p->labels; j++) {
        const uint64_t label = place_of(c->targets + i * c->longest + j);
        p->classes[j] = label < (uint64_t)c->classes ? (int64_t)label : 0;
    }
    /* A label may follow another one at once; not itself, nor what says nothing. */
    for (int64_t s = 0; s < p->all + 2; s++) p->skips[s] = -INFINITY;
    for (int64_t s = p->states; s < p->all; s++) p->emitted[s] = -INFINITY;
    for (int64_t j = 1; j < p->labels; j++)
        if (p->classes[j] != p->classes[j - 1] && p->classes[j] != c->blank) p->skips[2 * j + 1] = 0;
    return 1;
}

static void NAME(emit)(const NAME(Ctc) *c, const NAME(Path) *p, int64_t t) {
    const T *y = p->y + t * c->time_step;
    const double blank = (double)y[c->blank];
    for (int64_t j = 0; j < p->labels; j++) {
        p->emitted[2 * j] = blank;
        p->emitted[2 * j + 1] = (double)y[p->classes[j]];
    }
    p->emitted[2 * p->labels] = blank;
}

/* The loss; α of step t goes to row t % `rows`. */
static double NAME(walk)(const NAME(Ctc) *c, const NAME(Path) *p, int64_t rows) {
    const int64_t width = NAME(width_of)(c->longest), states = p->states;
    if (p->length == 0) return p->labels == 0 ? 0 : INFINITY; /* nothing was heard */
    for (int64_t t = 0; t < p->length; t++) {
        double *alpha = p->rows + t % rows * width;
        alpha[0] = alpha[1] = -INFINITY;
        NAME(emit)(c, p, t);
        if (t == 0) {
            for (int64_t s = 0; s < p->all; s++) alpha[s + 2] = s < 2 && s < states ? p->emitted[s] : -INFINITY;
        } else {
            step_forward(alpha, p->rows + (t - 1) % rows * width, p->skips, p->emitted, p->all);
        }
    }
    const double *last = p->rows + (p->length - 1) % rows * width;
    return -log_sum(last[states + 1], states > 1 ? last[states] : -INFINITY, -INFINITY);
}

static void NAME(ctc_loss_step)(const void *context, int64_t begin, int64_t end) {
    const NAME(Ctc) *c = context;
    for (int64_t i = begin; i < end; i++) {
        NAME(Path) p;
        if (NAME(path_of)(c, i, 2, &p)) c->out[i] = (T)NAME(walk)(c, &p, 2);
    }
}

/* exp(y) less the probability that a path is in the class, times the gradient. */
WIDE static void NAME(ctc_slopes)(T *restrict out, const T *restrict y, double *restrict visited, double missing, T by,
                                  int64_t n) {
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        out[i] = (T)((double)EXP(y[i]) - (visited[i] + missing)) * by;
        visited[i] = 0;
    }
}

static void NAME(ctc_loss_backward_step)(const void *context, int64_t begin, int64_t end) {
    const NAME(Ctc) *c = context;
    const int64_t width = NAME(width_of)(c->longest), n = c->classes;
    for (int64_t i = begin; i < end; i++) {
        T *out = c->out + i * c->step;
        NAME(Path) p;
        if (!NAME(path_of)(c, i, c->time, &p)) continue;
        const double loss = NAME(walk)(c, &p, c->time);
        const int64_t states = p.states, steps = loss == INFINITY && c->zero_infinity ? 0 : p.length;
        for (int64_t t = steps; t < c->time; t++) memset(out + t * c->time_step, 0, (size_t)n * sizeof(T));
        memset(p.visited, 0, (size_t)n * sizeof(double));
        double *beta = p.betas, *after = p.betas + width;
        for (int64_t s = 0; s < 2 * width; s++) p.betas[s] = -INFINITY;
        for (int64_t t = steps - 1; t >= 0; t--) {
            NAME(emit)(c, &p, t);
            if (t == steps - 1) {
                for (int64_t s = states > 1 ? states - 2 : 0; s < states; s++) beta[s] = p.emitted[s];
            } else {
                step_back(beta, after, p.skips, p.emitted, p.all);
            }
            shares(p.share, p.rows + t * width, beta, p.emitted, loss, p.all);
            for (int64_t j = 0; j < p.labels; j++) {
                p.visited[c->blank] += p.share[2 * j];
                p.visited[p.classes[j]] += p.share[2 * j + 1];
            }
            p.visited[c->blank] += p.share[2 * p.labels];
            /* An infinite loss has no gradient: what is missing then is NaN. */
            NAME(ctc_slopes)(out + t * c->time_step, p.y + t * c->time_step, p.visited, loss - loss, c->grad[i], n);
            double *other = beta;
            beta = after, after = other;
        }
    }
}

/* Of both kernels the integers: time, sequences, classes, the longest target, the blank, whether a sequence lies
   behind the other in memory rather than a step, and the room. */
static int NAME(ctc_of)(const Args *k, const T *y, const void *const *given, NAME(Ctc) *c) {
    c->y = y, c->targets = given[0], c->inputs = given[1], c->labels = given[2], c->scratch = k->p[1];
    c->time = k->n[0], c->count = k->n[1], c->classes = k->n[2], c->longest = k->n[3], c->blank = k->n[4];
    c->room = k->n[6];
    if (c->time < 1 || c->count < 1 || c->classes < 1) return 0;
    c->time_step = k->n[5] ? c->classes : c->count * c->classes;
    c->step = k->n[5] ? c->time * c->classes : c->classes;
    return in_range(k, &c->blank, 1, c->classes) && in_range(k, c->targets, c->count * c->longest, c->classes) &&
           in_range(k, c->inputs, c->count, c->time + 1) && in_range(k, c->labels, c->count, c->longest + 1);
}

static int NAME(has_room)(const Args *k, const NAME(Ctc) *c, int64_t rows) {
    if (c->room >= NAME(ctc_room)(rows, c->longest, c->classes)) return 1;
    *k->failure = "the scratch is too short";
    return 0;
}

static void NAME(ctc_loss)(const Args *k) {
    NAME(Ctc) c = {.out = k->p[0]};
    if (!NAME(ctc_of)(k, k->p[2], (const void *const *)k->p + 3, &c) || !NAME(has_room)(k, &c, 2)) return;
    split(NAME(ctc_loss_step), &c, c.count, team(k, times(c.count * c.time, 8 * c.longest)));
}

static void NAME(ctc_loss_backward)(const Args *k) {
    NAME(Ctc) c = {.out = k->p[0], .grad = k->p[2], .zero_infinity = k->n[7] != 0};
    if (!NAME(ctc_of)(k, k->p[3], (const void *const *)k->p + 4, &c) || !NAME(has_room)(k, &c, c.time)) return;
    split(NAME(ctc_loss_backward_step), &c, c.count, team(k, times(c.count * c.time, 16 * c.longest)));
}
