// A child process that does not outlive what started it.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace wavetank::envoydiff {

class Process {
 public:
  Process() = default;
  ~Process() { Kill(); }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // What it prints goes to the file `log`. With `own_network` it runs in a network namespace of its own, in which only
  // the loopback interface is up; false if the system allows none (see NetworkNamespaceAllowed). The kernel kills the
  // child when the thread that called this ends.
  bool Start(const std::vector<std::string>& arguments, const std::string& log, bool own_network = false);
  bool running();
  void Kill();

 private:
  pid_t pid_ = -1;
};

// Whether this process may make network namespaces, found by trying once in a child.
bool NetworkNamespaceAllowed();

}  // namespace wavetank::envoydiff
