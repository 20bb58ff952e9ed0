// Counts the program's allocations and, if WAVETANK_BENCH_BYTES is defined, the bytes that it holds as malloc rounds
// them: to ask for those costs about as much as the allocation. Include it in one file only: it replaces operator new.
#pragma once

#include <malloc.h>

#include <cstdlib>
#include <new>

namespace wavetank::bench {

inline size_t allocations = 0;
#ifdef WAVETANK_BENCH_BYTES
inline size_t live_bytes = 0;
inline void Hold(void* p) { live_bytes += malloc_usable_size(p); }
inline void Drop(void* p) { live_bytes -= malloc_usable_size(p); }  // 0 of null
#else
inline void Hold(void*) {}
inline void Drop(void*) {}
#endif

}  // namespace wavetank::bench

// Not inlined: GCC would then see malloc's pointer reach what it takes for the standard operator delete.
[[gnu::noinline]] void* operator new(size_t size) {
  ++wavetank::bench::allocations;
  void* const p = std::malloc(size);
  if (p == nullptr) throw std::bad_alloc();
  wavetank::bench::Hold(p);
  return p;
}
[[gnu::noinline]] void operator delete(void* p) noexcept {
  wavetank::bench::Drop(p);
  std::free(p);
}
[[gnu::noinline]] void operator delete(void* p, size_t) noexcept { operator delete(p); }

// Of these too, as an allocator that is linked in has its own, which would be counted when they are given back only.
[[gnu::noinline]] void* operator new(size_t size, const std::nothrow_t&) noexcept {
  ++wavetank::bench::allocations;
  void* const p = std::malloc(size);
  if (p != nullptr) wavetank::bench::Hold(p);
  return p;
}
[[gnu::noinline]] void* operator new[](size_t size) { return operator new(size); }
[[gnu::noinline]] void* operator new[](size_t size, const std::nothrow_t& no) noexcept {
  return operator new(size, no);
}
[[gnu::noinline]] void operator delete(void* p, const std::nothrow_t&) noexcept { operator delete(p); }
[[gnu::noinline]] void operator delete[](void* p) noexcept { operator delete(p); }
[[gnu::noinline]] void operator delete[](void* p, size_t) noexcept { operator delete(p); }
[[gnu::noinline]] void operator delete[](void* p, const std::nothrow_t&) noexcept { operator delete(p); }
