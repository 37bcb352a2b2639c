// Optimizer steps over one parameter group: block row y works on tensor y of the table, which
// travels with the launch.  Launches may carry 4 KiB.
struct Table {
  void* at[6][64];  // by role: parameter, gradient, state
  int64 size[64];
};

extern "C" __global__ void sgd_step(
    Table table, double lr, double momentum, double dampening, double weight_decay, int nesterov,
    int maximize) {
  T* p = (T*)table.at[0][blockIdx.y];
  const T* g = (const T*)table.at[1][blockIdx.y];
  T* buffer = (T*)table.at[2][blockIdx.y];
  GRID_LOOP(i, table.size[blockIdx.y]) {
    A x = p[i], d = maximize ? -(A)g[i] : (A)g[i];
    if (weight_decay != 0) d += (A)weight_decay * x;
    if (momentum != 0) {
      A b = (A)momentum * (A)buffer[i] + (A)(1 - dampening) * d;
      buffer[i] = (T)b;
      d = nesterov ? d + (A)momentum * b : b;
    }
    p[i] = (T)(x - (A)lr * d);
  }
}

// A number of a parameter: `kind` 0 a pointer to float, 1 to double, 2 a double in its place.
__device__ inline double scalar(void* const& at, int kind) {
  return kind == 0 ? (double)*(const float*)at : kind == 1 ? *(const double*)at
                                                           : *(const double*)&at;
}
__device__ inline void store(void* at, int kind, double value) {
  if (kind == 0) *(float*)at = (float)value;
  else *(double*)at = value;
}

// Adds 1 to the counts of steps, role 5, which are on the device.
extern "C" __global__ void count_steps(Table table, int n, int kind) {
  GRID_LOOP(i, n) store(table.at[5][i], kind, scalar(table.at[5][i], kind) + 1);
}

// The same, and the rates of the step that is made: those of NAdam's momentum, multiplied up in role
// 4, and the next ones of ASGD, roles 3 and 4.
__device__ inline double nadam_mu(double beta1, double t, double decay) {
  return beta1 * (1 - 0.5 * pow(0.96, t * decay));
}
extern "C" __global__ void nadam_count(Table table, int n, int kind, double beta1, double decay) {
  GRID_LOOP(i, n) {
    double t = scalar(table.at[5][i], kind) + 1;
    store(table.at[5][i], kind, t);
    store(table.at[4][i], kind, scalar(table.at[4][i], kind) * nadam_mu(beta1, t, decay));
  }
}
extern "C" __global__ void asgd_count(
    Table table, int n, int kind, double lr, double lambd, double alpha, double t0) {
  GRID_LOOP(i, n) {
    double t = scalar(table.at[5][i], kind) + 1, late = t - t0;
    store(table.at[5][i], kind, t);
    store(table.at[3][i], kind, lr / pow(1 + lambd * lr * t, alpha));
    store(table.at[4][i], kind, 1 / (late > 1 ? late : 1));
  }
}

// Roles 2 to 4 are the mean, the mean square and, where `amsgrad`, its maximum; role 5 is the number
// of the step.
extern "C" __global__ void adam_step(
    Table table, int kind, double lr, double beta1, double beta2, double eps, double weight_decay,
    int decoupled, int amsgrad, int maximize) {
  T* p = (T*)table.at[0][blockIdx.y];
  const T* g = (const T*)table.at[1][blockIdx.y];
  T* mean = (T*)table.at[2][blockIdx.y];
  T* square = (T*)table.at[3][blockIdx.y];
  T* largest = (T*)table.at[4][blockIdx.y];
  __shared__ double corrections[2];
  if (threadIdx.x == 0) {
    double t = scalar(table.at[5][blockIdx.y], kind);
    corrections[0] = lr / (1 - pow(beta1, t));
    corrections[1] = sqrt(1 - pow(beta2, t));
  }
  __syncthreads();
  A rate = (A)corrections[0], root = (A)corrections[1];
  GRID_LOOP(i, table.size[blockIdx.y]) {
    A x = p[i], d = maximize ? -(A)g[i] : (A)g[i];
    if (decoupled) x *= (A)(1 - lr * weight_decay);
    else if (weight_decay != 0) d += (A)weight_decay * x;
    A m = (A)beta1 * (A)mean[i] + (A)(1 - beta1) * d;
    A v = (A)beta2 * (A)square[i] + (A)(1 - beta2) * d * d;
    mean[i] = (T)m;
    square[i] = (T)v;
    if (amsgrad) {
      v = bigger((A)largest[i], v);
      largest[i] = (T)v;
    }
    p[i] = (T)(x - rate * m / (sqrt(v) / root + (A)eps));
  }
}

#define TENSORS \
  T* p = (T*)table.at[0][blockIdx.y]; \
  const T* g = (const T*)table.at[1][blockIdx.y]; \
  T* first = (T*)table.at[2][blockIdx.y]; \
  T* second = (T*)table.at[3][blockIdx.y]; \
  T* third = (T*)table.at[4][blockIdx.y]; \
  const int64 size = table.size[blockIdx.y]
#define GRADIENT(x) ((maximize ? -(A)g[i] : (A)g[i]) + (weight_decay != 0 ? (A)weight_decay * (x) : (A)0))

// Role 2 is the average, 3 the rate η, 4 the rate μ.
extern "C" __global__ void asgd_step(
    Table table, int kind, double lambd, double weight_decay, int maximize) {
  TENSORS;
  double eta = scalar(table.at[3][blockIdx.y], kind), mu = scalar(table.at[4][blockIdx.y], kind);
  (void)second, (void)third;
  GRID_LOOP(i, size) {
    A x = p[i], value = x * (A)(1 - lambd * eta) - GRADIENT(x) * (A)eta;
    p[i] = (T)value;
    A mean = first[i];
    first[i] = mu == 1 ? (T)value : (T)(mean + (value - mean) * (A)mu);
  }
}

// Role 2 is the mean square, 3 the mean, 4 the momentum.
extern "C" __global__ void rmsprop_step(
    Table table, double lr, double alpha, double eps, double weight_decay, double momentum,
    int centered, int maximize) {
  TENSORS;
  GRID_LOOP(i, size) {
    A x = p[i], d = GRADIENT(x);
    A v = (A)alpha * (A)first[i] + (A)(1 - alpha) * d * d;
    first[i] = (T)v;
    if (centered) {
      A m = (A)alpha * (A)second[i] + (A)(1 - alpha) * d;
      second[i] = (T)m;
      v -= m * m;
    }
    d = d / (sqrt(v) + (A)eps);
    if (momentum > 0) {
      d = (A)momentum * (A)third[i] + d;
      third[i] = (T)d;
    }
    p[i] = (T)(x - (A)lr * d);
  }
}

extern "C" __global__ void adagrad_step(
    Table table, int kind, double lr, double lr_decay, double eps, double weight_decay,
    int maximize) {
  TENSORS;
  A rate = (A)(lr / (1 + (scalar(table.at[5][blockIdx.y], kind) - 1) * lr_decay));
  (void)second, (void)third;
  GRID_LOOP(i, size) {
    A x = p[i], d = GRADIENT(x), sum = (A)first[i] + d * d;
    first[i] = (T)sum;
    p[i] = (T)(x - rate * (d / (sqrt(sum) + (A)eps)));
  }
}

// Role 2 is the mean square of gradients, 3 that of steps.
extern "C" __global__ void adadelta_step(
    Table table, double lr, double rho, double eps, double weight_decay, int maximize) {
  TENSORS;
  (void)third;
  GRID_LOOP(i, size) {
    A x = p[i], d = GRADIENT(x), u = second[i];
    A v = (A)rho * (A)first[i] + (A)(1 - rho) * d * d;
    first[i] = (T)v;
    A delta = sqrt(u + (A)eps) / sqrt(v + (A)eps) * d;
    second[i] = (T)((A)rho * u + (A)(1 - rho) * delta * delta);
    p[i] = (T)(x - (A)lr * delta);
  }
}

// Role 2 is the mean, 3 the largest gradient.
extern "C" __global__ void adamax_step(
    Table table, int kind, double lr, double beta1, double beta2, double eps, double weight_decay,
    int maximize) {
  TENSORS;
  A rate = (A)(lr / (1 - pow(beta1, scalar(table.at[5][blockIdx.y], kind))));
  (void)third;
  GRID_LOOP(i, size) {
    A x = p[i], d = GRADIENT(x);
    A m = (A)beta1 * (A)first[i] + (A)(1 - beta1) * d;
    A u = bigger((A)second[i] * (A)beta2, (d < 0 ? -d : d) + (A)eps);
    first[i] = (T)m;
    second[i] = (T)u;
    p[i] = (T)(x - rate * m / u);
  }
}

// Role 2 is the mean, 3 the mean square, 4 the product of the rates of momentum up to this step.
extern "C" __global__ void nadam_step(
    Table table, int kind, double lr, double beta1, double beta2, double eps, double weight_decay,
    double decay, int decoupled, int maximize) {
  TENSORS;
  double t = scalar(table.at[5][blockIdx.y], kind);
  double product = scalar(table.at[4][blockIdx.y], kind);
  double mu = nadam_mu(beta1, t, decay), next = nadam_mu(beta1, t + 1, decay);
  A of_grad = (A)(lr * (1 - mu) / (1 - product)), of_mean = (A)(lr * next / (1 - product * next));
  A correction = (A)(1 - pow(beta2, t));
  (void)third;
  GRID_LOOP(i, size) {
    A x = p[i], d = maximize ? -(A)g[i] : (A)g[i];
    if (decoupled) x *= (A)(1 - lr * weight_decay);
    else if (weight_decay != 0) d += (A)weight_decay * x;
    A m = (A)beta1 * (A)first[i] + (A)(1 - beta1) * d;
    A v = (A)beta2 * (A)second[i] + (A)(1 - beta2) * d * d;
    first[i] = (T)m;
    second[i] = (T)v;
    p[i] = (T)(x - (of_grad * d + of_mean * m) / (sqrt(v / correction) + (A)eps));
  }
}

// Role 2 is the mean, 3 the mean square.
extern "C" __global__ void radam_step(
    Table table, int kind, double lr, double beta1, double beta2, double eps, double weight_decay,
    int decoupled, int maximize) {
  TENSORS;
  double t = scalar(table.at[5][blockIdx.y], kind), power = pow(beta2, t);
  double longest = 2 / (1 - beta2) - 1, length = longest - 2 * t * power / (1 - power);
  double factor = 0;  // while the mean square is of too few for a variance
  if (length > 5) {
    factor = sqrt((length - 4) * (length - 2) * longest * (1 - power) /
                  ((longest - 4) * (longest - 2) * length));
  }
  A rate = (A)(lr / (1 - pow(beta1, t)));
  (void)third;
  GRID_LOOP(i, size) {
    A x = p[i], d = maximize ? -(A)g[i] : (A)g[i];
    if (decoupled) x *= (A)(1 - lr * weight_decay);
    else if (weight_decay != 0) d += (A)weight_decay * x;
    A m = (A)beta1 * (A)first[i] + (A)(1 - beta1) * d;
    A v = (A)beta2 * (A)second[i] + (A)(1 - beta2) * d * d;
    first[i] = (T)m;
    second[i] = (T)v;
    if (factor != 0) m = m / (sqrt(v) + (A)eps) * (A)factor;
    p[i] = (T)(x - rate * m);
  }
}

// Role 2 is the last gradient, 3 the size of the step.
extern "C" __global__ void rprop_step(
    Table table, double shrink, double grow, double smallest, double largest, int maximize) {
  TENSORS;
  (void)third;
  GRID_LOOP(i, size) {
    A d = maximize ? -(A)g[i] : (A)g[i], agreement = d * (A)first[i], step = second[i];
    if (agreement < 0) d = 0;
    step *= agreement < 0 ? (A)shrink : agreement > 0 ? (A)grow : (A)1;
    step = step < (A)smallest ? (A)smallest : step > (A)largest ? (A)largest : step;
    first[i] = (T)d;
    second[i] = (T)step;
    p[i] = (T)((A)p[i] - (A)((d > 0) - (d < 0)) * step);
  }
}
