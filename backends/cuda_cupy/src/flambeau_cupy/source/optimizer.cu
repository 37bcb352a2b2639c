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

// Adds 1 to the counts of steps, role 5: float, or double where `wide`.
extern "C" __global__ void count_steps(Table table, int n, int wide) {
  GRID_LOOP(i, n) {
    if (wide) *(double*)table.at[5][i] += 1;
    else *(float*)table.at[5][i] += 1;
  }
}

// Roles 2 to 4 are the mean, the mean square and, where `amsgrad`, its maximum.  Role 5 is the
// number of the step: `kind` 0 a pointer to float, 1 to double, 2 a double in the pointer's place.
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
    const void* step = table.at[5][blockIdx.y];
    double t = kind == 0 ? (double)*(const float*)step
             : kind == 1 ? *(const double*)step : *(const double*)&table.at[5][blockIdx.y];
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
