// The shell of simulated pods: plain commands, one after the other (`;`, `&&`, `||`, lines), `exit`, `>&2` and `2>&1`.
// Variables, loops, pipes and files are refused by name, as there is no process that could have them.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "serve/pods/curl.h"

namespace wavetank::serve {

struct ShellStep {
  enum class When { kAlways, kAfterSuccess, kAfterFailure };
  When when = When::kAlways;
  std::vector<std::string> words;
  bool out_to_err = false, err_to_out = false;
};

// InvalidArgument: in a shell's words, what it does not know.
absl::StatusOr<std::vector<ShellStep>> ReadShell(std::string_view line);

class Shell : public std::enable_shared_from_this<Shell> {
 public:
  using Done = std::function<void(CommandResult)>;
  using Command = std::function<void(const std::vector<std::string>& argv, Done done)>;
  explicit Shell(Command command) : command_(std::move(command)) {}

  // Runs `line`: `tell` gets what each command prints, as it ends; `done`, once, the last exit code, and whether `exit`
  // was among them. On one thread, now or later.
  void Run(std::string_view line, std::function<void(const CommandResult&)> tell,
           std::function<void(int code, bool exited)> done);

 private:
  struct Running;
  void Go(const std::shared_ptr<Running>& running);

  const Command command_;
  int code_ = 0;  // of the last command, also of an earlier line
};

// So many bytes may be typed ahead of what is run.
inline constexpr size_t kMaxTypedAhead = 1 << 20;

// What somebody types into a shell, as lines. With a terminal it is shown to him, and he may correct it.
class TypedLines {
 public:
  explicit TypedLines(bool terminal) : terminal_(terminal) {}
  // What the terminal shows of `bytes`; nothing without one.
  std::string Feed(std::string_view bytes);
  // The first line that is there.
  std::string Take();
  // Nothing follows: what has no end of line is a line, too.
  void End();

  std::deque<std::string> lines;
  bool ended = false;
  bool too_much() const { return waiting_ + line_.size() > kMaxTypedAhead; }

 private:
  void AddLine();

  const bool terminal_;
  std::string line_;
  size_t waiting_ = 0;  // bytes of `lines`, each with its end
};

}  // namespace wavetank::serve
