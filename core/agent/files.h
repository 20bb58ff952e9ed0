// The files that an agent sees, relative to where it runs: "./etc/certs/key.pem" of a real folder, or what is mounted
// into a simulated pod.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace wavetank::agent {

class Files {
 public:
  virtual ~Files() = default;
  // NotFound and the like, with Go's words: "open PATH: no such file or directory".
  virtual absl::StatusOr<std::string> Read(std::string_view path) = 0;
  // The paths of all files below a folder, at any depth, sorted; none if it is not there.
  virtual std::vector<std::string> List(std::string_view folder) = 0;
  // The whole file at once, or nothing of it. ResourceExhausted: the disk is full; NotFound: there is no such folder.
  virtual absl::Status Write(std::string_view path, std::string_view bytes) = 0;
};

}  // namespace wavetank::agent
