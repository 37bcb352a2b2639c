// Connectionist temporal classification: a block per sequence, a thread per state.  States are the
// labels with blanks around them: 0, 2, ... are blanks, 2 j + 1 is label j.
__device__ inline A log_sum(A a, A b, A c) {
  A top = bigger(bigger(a, b), c);
  if (top == NEGATIVE_INFINITY) return top;
  return top + log(exp(a - top) + exp(b - top) + exp(c - top));
}

struct Sequence {
  const int64* labels;
  int64 steps, states, blank, classes;
  __device__ Sequence(
      const int64* targets, const int64* input_lengths, const int64* target_lengths, int64 n,
      int64 width, int64 b, int64 c)
      : labels(targets + n * width), steps(input_lengths[n]), states(2 * target_lengths[n] + 1),
        blank(b), classes(c) {}
  // A label that names no class, which may have changed since it was looked at, is a blank.
  __device__ int64 label(int64 s) const {
    int64 l = s % 2 ? labels[s / 2] : blank;
    return l < 0 || l >= classes ? blank : l;
  }
  // Whether s may follow s - 2: no blank between different labels is needed.
  __device__ bool skips(int64 s) const {
    return s >= 2 && s < states && label(s) != blank && label(s) != label(s - 2);
  }
};

// Everything is (steps, count, ...); `alphas` has room for 2 width + 1 states.
extern "C" __global__ void ctc_forward(
    T* losses, A* exact, A* alphas, const T* log_probs, const int64* targets,
    const int64* input_lengths, const int64* target_lengths, int64 blank, int64 count,
    int64 classes, int64 width) {
  for (int64 n = blockIdx.x; n < count; n += gridDim.x) {
    Sequence q(targets, input_lengths, target_lengths, n, width, blank, classes);
    int64 row = count * (2 * width + 1);
    A* alpha = alphas + n * (2 * width + 1);
    for (int64 t = 0; t < q.steps; t++) {
      const T* y = log_probs + (t * count + n) * classes;
      const A* before = alpha + (t - 1) * row;
      BLOCK_LOOP(s, q.states) {
        A value;
        if (t == 0) value = s < 2 ? (A)0 : NEGATIVE_INFINITY;
        else
          value = log_sum(
              before[s], s >= 1 ? before[s - 1] : NEGATIVE_INFINITY,
              q.skips(s) ? before[s - 2] : NEGATIVE_INFINITY);
        alpha[t * row + s] = value + (A)y[q.label(s)];
      }
      __syncthreads();
    }
    if (threadIdx.x == 0) {
      A loss;
      if (q.steps == 0) loss = q.states == 1 ? (A)0 : -NEGATIVE_INFINITY;
      else {
        const A* last = alpha + (q.steps - 1) * row;
        A label = q.states > 1 ? last[q.states - 2] : NEGATIVE_INFINITY;
        loss = -log_sum(last[q.states - 1], label, NEGATIVE_INFINITY);
      }
      losses[n] = (T)loss;
      exact[n] = loss;
    }
  }
}

// With what `ctc_forward` has left.  `betas` has room for two rows, `shares` for one.
extern "C" __global__ void ctc_backward(
    T* out, const T* grad, A* betas, A* shares, const A* exact, const A* alphas,
    const T* log_probs, const int64* targets, const int64* input_lengths,
    const int64* target_lengths, int64 blank, int zero_infinity, int64 steps, int64 count,
    int64 classes, int64 width) {
  for (int64 n = blockIdx.x; n < count; n += gridDim.x) {
    Sequence q(targets, input_lengths, target_lengths, n, width, blank, classes);
    int64 states = 2 * width + 1, row = count * states;
    A* share = shares + n * states;
    A loss = exact[n], g = grad[n];
    bool infinite = loss == -NEGATIVE_INFINITY;
    for (int64 t = steps - 1; t >= 0; t--) {
      const T* y = log_probs + (t * count + n) * classes;
      T* to = out + (t * count + n) * classes;
      if (t >= q.steps || infinite) {
        A value = t < q.steps && !zero_infinity ? loss - loss : (A)0;
        BLOCK_LOOP(c, classes) to[c] = (T)value;
        continue;
      }
      A* beta = betas + t % 2 * row + n * states;
      const A* behind = betas + (t + 1) % 2 * row + n * states;
      BLOCK_LOOP(s, q.states) {
        A value;
        if (t == q.steps - 1) value = s >= q.states - 2 ? (A)0 : NEGATIVE_INFINITY;
        else
          value = log_sum(
              behind[s], s + 1 < q.states ? behind[s + 1] : NEGATIVE_INFINITY,
              q.skips(s + 2) ? behind[s + 2] : NEGATIVE_INFINITY);
        beta[s] = value + (A)y[q.label(s)];
        share[s] = exp(alphas[t * row + n * states + s] + value + loss);
      }
      BLOCK_LOOP(c, classes) to[c] = (T)(g * exp((A)y[c]));
      __syncthreads();
      // The first state of each label sums over all of them, in their order.
      BLOCK_LOOP(s, q.states) {
        int64 label = q.label(s), i = 0;
        while (i < s && q.label(i) != label) i++;
        if (i < s) continue;
        A visited = 0;
        for (; i < q.states; i++) {
          if (q.label(i) == label) visited += share[i];
        }
        to[label] = (T)(g * (exp((A)y[label]) - visited));
      }
      __syncthreads();
    }
  }
}
