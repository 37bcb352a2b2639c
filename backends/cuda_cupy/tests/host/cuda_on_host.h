// Runs CUDA C kernels on the host: every CUDA thread is a fiber, blocks run one after another.
//
// Shared memory is `static`, __syncthreads() and shuffles yield to the scheduler, which finds
// barriers that not all threads reach.  It does not see races between warps, nor anything about
// speed.  Blocks are whole warps.
#pragma once
#include <math.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>
#include <type_traits>
#include <utility>
#include <vector>
#define __global__
#define __device__
#define __shared__ static

namespace emu {
struct D3 { unsigned x, y, z; };
enum State { RUN, WARP, BLOCK, DONE };
struct Fiber { ucontext_t context; State state; int site; D3 index; };
std::vector<Fiber> fibers;
std::vector<char> stacks;
ucontext_t scheduler;
int current;
char slots[1024][16];
const char* message = "";
typedef void (*Body)(void*);
Body body;
void* argument;

void start() {
  body(argument);
  fibers[current].state = DONE;
  swapcontext(&fibers[current].context, &scheduler);
}
void yield(State state, int site) {
  fibers[current].state = state;
  fibers[current].site = site;
  swapcontext(&fibers[current].context, &scheduler);
}
void resume(int i) {
  current = i;
  fibers[i].state = RUN;
  swapcontext(&scheduler, &fibers[i].context);
}
}  // namespace emu

static emu::D3 gridDim, blockDim, blockIdx;
#define threadIdx (emu::fibers[emu::current].index)
#define __syncthreads() emu::yield(emu::BLOCK, __LINE__)

// Publish, meet, read, meet.
template <class V> V __shfl_xor_sync(unsigned, V value, int mask) {
  int me = emu::current, other = me ^ mask;
  memcpy(emu::slots[me], &value, sizeof value);
  emu::yield(emu::WARP, 0);
  V found;
  memcpy(&found, emu::slots[other], sizeof found);
  emu::yield(emu::WARP, 0);
  return found;
}

// Fibers run one at a time.
template <class V> V atomicAdd(V* place, V value) {
  V before = *place;
  *place = before + value;
  return before;
}
template <class V> V atomicMax(V* place, V value) {
  V before = *place;
  if (value > before) *place = value;
  return before;
}
template <class V> V atomicMin(V* place, V value) {
  V before = *place;
  if (value < before) *place = value;
  return before;
}

namespace emu {
// One block: warps run in turn from barrier to barrier.  0, or 1 with `message` set.
int run_block(int n) {
  for (;;) {
    int done = 0, site = -1;
    for (int w = 0; w < n; w += 32) {
      for (;;) {
        int waiting = 0, blocked = 0;
        for (int i = w; i < w + 32; i++)
          if (fibers[i].state == RUN || fibers[i].state == WARP) resume(i);
        for (int i = w; i < w + 32; i++) {
          waiting += fibers[i].state == WARP;
          blocked += fibers[i].state != WARP;
        }
        if (!waiting) break;
        if (blocked) { message = "a shuffle that not all lanes of a warp reach"; return 1; }
      }
    }
    for (int i = 0; i < n; i++) {
      done += fibers[i].state == DONE;
      if (fibers[i].state != BLOCK) continue;
      if (site >= 0 && site != fibers[i].site) {
        message = "threads at different __syncthreads()";
        return 1;
      }
      site = fibers[i].site;
    }
    if (done == n) return 0;
    if (done) { message = "a __syncthreads() that not all threads reach"; return 1; }
    for (int i = 0; i < n; i++) fibers[i].state = RUN;
  }
}
int launch(D3 grid, D3 block, Body f, void* a) {
  const size_t stack = 64 << 10;
  int n = block.x * block.y * block.z;
  if (n > 1024 || n % 32) { message = "blocks are whole warps, at most 32"; return 1; }
  fibers.resize(n);
  stacks.resize(n * stack);
  gridDim = grid, blockDim = block, body = f, argument = a;
  for (unsigned z = 0; z < grid.z; z++)
    for (unsigned y = 0; y < grid.y; y++)
      for (unsigned x = 0; x < grid.x; x++) {
        blockIdx = {x, y, z};
        for (int i = 0; i < n; i++) {
          Fiber& fiber = fibers[i];
          getcontext(&fiber.context);
          fiber.context.uc_stack.ss_sp = &stacks[i * stack];
          fiber.context.uc_stack.ss_size = stack;
          fiber.context.uc_link = &scheduler;
          fiber.state = RUN;
          fiber.index = {i % block.x, i / block.x % block.y, i / (block.x * block.y)};
          makecontext(&fiber.context, start, 0);
        }
        if (run_block(n)) return 1;
      }
  return 0;
}
template <class... A> struct Call {
  void (*kernel)(A...);
  void** values;
  template <size_t... I> void make(std::index_sequence<I...>) {
    kernel(*(std::remove_reference_t<A>*)values[I]...);
  }
  static void run(void* self) { ((Call*)self)->make(std::index_sequence_for<A...>{}); }
};
template <class... A> int call(void (*kernel)(A...), const unsigned* d, void** values) {
  Call<A...> c{kernel, values};
  return launch({d[0], d[1], d[2]}, {d[3], d[4], d[5]}, &Call<A...>::run, &c);
}
}  // namespace emu

#define EMU_EXPORT(k) \
  extern "C" int emu_##k(const unsigned* d, void** values) { return emu::call(&k, d, values); }
extern "C" const char* emu_message() { return emu::message; }
