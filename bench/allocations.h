// Counts the program's allocations. Include it in one file only: it replaces operator new.
#pragma once

#include <cstdlib>
#include <new>

namespace wavetank::bench {

inline size_t allocations = 0;

}  // namespace wavetank::bench

// Not inlined: GCC would then see malloc's pointer reach what it takes for the standard operator delete.
[[gnu::noinline]] void* operator new(size_t size) {
  ++wavetank::bench::allocations;
  if (void* p = std::malloc(size)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, size_t) noexcept { std::free(p); }
