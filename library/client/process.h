// The process in which a world lives, as its client sees it: requests and answers, a line of JSON each.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "wavetank/result.h"
#include "wavetank/value.h"

namespace wavetank::client {

class Process {
 public:
  // `program`: empty, or a path; see WorldOptions::program. Errors say which program could not be started.
  static Result<std::unique_ptr<Process>> Start(const std::string& program);
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process();

  // The answer's fields. An error is the other side's, or says that the process has ended.
  Result<Value> Ask(Value::Map request);
  // A copy of it that answers on its own.
  Result<std::unique_ptr<Process>> Fork();
  int64_t now_ns() const { return now_ns_; }

 private:
  Process(int socket, pid_t pid) : socket_(socket), pid_(pid) {}
  bool Send(const std::string& line, int beside);
  bool Receive(std::string* line);
  Result<Value> Exchange(Value::Map request, int beside);

  int socket_;
  pid_t pid_;  // -1: a copy, which is another process's child
  std::string text_;
  int64_t now_ns_ = 0;
};

// What a program prints on standard output; in `complaint` what it says on standard error, as its first line has it
// behind "wavetank: ". Error: it could not be started.
Result<std::string> OutputOf(const std::string& program, const std::vector<std::string>& arguments, int* code,
                             std::string* complaint);

}  // namespace wavetank::client
