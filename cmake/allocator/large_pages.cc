// The memory of the programs that mimalloc is linked to (wavetank_allocator in CMakeLists.txt), in pages of 2 MB where
// the system has them for who asks (transparent huge pages, "madvise" or "always"); elsewhere nothing changes.
//
// A world is millions of small objects that are met in no order, so that most of them miss the translation of their
// address, and a virtual machine looks each up twice: docs/performance.md has what it costs.
#include <mimalloc.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include <cinttypes>
#include <cstdint>
#include <cstdio>

namespace {

constexpr std::uintptr_t kLargePage = std::uintptr_t{2} << 20;

// What was mapped before anybody could ask: the first segment, and with mimalloc 2.1 the gigabyte that all others come
// from.
void AdviseWhatIsMapped() {
  std::FILE* const maps = std::fopen("/proc/self/maps", "re");
  if (maps == nullptr) return;
  char line[512];
  while (std::fgets(line, sizeof line, maps) != nullptr) {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    std::uintptr_t inode = 1;
    char rights[5] = "";
    int named = 0;
    if (std::sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s %*x %*x:%*x %" SCNuPTR " %n", &begin, &end, rights, &inode,
                    &named) < 4)
      continue;
    const bool anonymous = inode == 0 && line[named] == '\0';
    if (anonymous && rights[2] != 'x' && rights[3] == 'p' && end - begin >= kLargePage) {
      madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);  // NOLINT(performance-no-int-to-ptr)
    }
  }
  std::fclose(maps);
}

// Before main(), as the constructors of a program allocate already; when it fails, pages are as large as before.
[[gnu::constructor]] void UseLargePages() {
  prctl(PR_SET_THP_DISABLE, 0, 0, 0,
        0);  // mimalloc 2.1 forbids them to a process that has not asked for them by its environment
  mi_option_enable(mi_option_large_os_pages);
  AdviseWhatIsMapped();
}

}  // namespace
