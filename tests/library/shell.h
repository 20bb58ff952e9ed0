// A command as a person types it: its exit code, and all that it said.
#pragma once

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

namespace wavetank {

struct Said {
  int code = -1;
  std::string output;
};

inline Said Shell(const std::string& command) {
  Said out;
  FILE* const pipe = popen(("{ " + command + "; } 2>&1").c_str(), "r");
  std::array<char, 4096> buffer;
  while (const size_t n = fread(buffer.data(), 1, buffer.size(), pipe)) out.output.append(buffer.data(), n);
  const int status = pclose(pipe);
  out.code = WIFEXITED(status) ? WEXITSTATUS(status) : 1000;
  return out;
}

}  // namespace wavetank
