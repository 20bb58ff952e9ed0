// Pages as a browser draws them: headless Chromium, without a network.
#pragma once

#include <sys/prctl.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <string>

#include "fmt/format.h"

namespace wavetank {

inline constexpr char kChromiumRemedy[] = "tools/setup packages-test.txt installs it";

inline std::string OutputOf(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return "";
  std::string out;
  std::array<char, 4096> buffer;
  while (const size_t n = fread(buffer.data(), 1, buffer.size(), pipe)) out.append(buffer.data(), n);
  pclose(pipe);
  return out;
}

// As OutputOf, and returns once everything that the command began has ended: Chromium's helper processes outlive it and
// still write into its profile, which the caller may remove. Orphans become the caller's children, who has no others.
inline std::string OutputOfAll(const std::string& command) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  std::string out = OutputOf(command);
  while (waitpid(-1, nullptr, 0) > 0) {
  }
  prctl(PR_SET_CHILD_SUBREAPER, 0);
  return out;
}

inline bool HasChromium() { return !OutputOf("command -v chromium || true").empty(); }

// The document of a page of ours (reports/page.h) once its scripts have run; its root element tells how many charts
// there are (data-charts), how many stayed blank (data-blank-charts), and the first error (data-error). Empty: there is
// none. The browser's profile stands beside the page.
inline std::string DrawnByChromium(const std::filesystem::path& page) {
  return OutputOfAll(
      fmt::format("timeout 120 chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run "
                  "--disable-background-networking --user-data-dir={0}/profile --virtual-time-budget=5000 "
                  "--dump-dom 'file://{1}#selftest' 2>{0}/stderr",
                  page.parent_path().string(), page.string()));
}

}  // namespace wavetank
