// A program that runs beside this one and does not outlive it.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/base/time.h"

namespace wavetank::serve {

class ChildProcess {
 public:
  struct Options {
    std::vector<std::string> arguments;              // the first is the program's path
    std::map<std::string, std::string> environment;  // all of it
    std::string folder;                              // where it starts
    std::string log;                                 // what it prints goes there; empty: where ours goes
    std::string resolv_conf;                         // it sees this file as /etc/resolv.conf; empty: that of all
  };

  ChildProcess() = default;
  ~ChildProcess() { Stop(Duration::zero()); }
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // Once only. InvalidArgument: the program cannot be run; PermissionDenied: this user may not show it another file as
  // /etc/resolv.conf, which takes root; Unavailable: the log cannot be written. The kernel kills the
  // child when the thread that called this ends, however it does.
  absl::Status Start(const Options& options);
  bool running();
  // "exit code 1", "signal 9"; empty while it runs, or if it never did.
  const std::string& end() const { return end_; }
  pid_t pid() const { return pid_; }
  // SIGTERM, and SIGKILL if it is still there after `patience`. By its id, and only while it has not been reaped.
  void Stop(Duration patience);

 private:
  pid_t pid_ = -1;
  std::string end_;
};

// Whether a file is there that this user may execute. InvalidArgument says what is wrong with it.
absl::Status CheckProgram(const std::string& path);

}  // namespace wavetank::serve
