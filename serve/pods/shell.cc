#include "serve/pods/shell.h"

#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "fmt/format.h"

namespace wavetank::serve {

absl::StatusOr<std::vector<ShellStep>> ReadShell(std::string_view line) {
  using When = ShellStep::When;
  std::vector<ShellStep> out;
  ShellStep step;
  std::optional<std::string> word;
  const auto end_word = [&] {
    if (word) step.words.push_back(*std::exchange(word, std::nullopt));
  };
  const auto refused = [](std::string_view what) {
    return absl::InvalidArgumentError(fmt::format("sh: '{}': the shell of simulated pods runs plain commands\n", what));
  };
  // Ends a command; an empty one only where nothing connects it.
  const auto end_step = [&](When next) {
    end_word();
    const bool connected = next != When::kAlways || step.when != When::kAlways;
    if (step.words.empty() && connected) return false;
    if (!step.words.empty()) out.push_back(std::move(step));
    step = ShellStep();
    step.when = next;
    return true;
  };
  char quote = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    const std::string_view rest = line.substr(i);
    if (quote != 0) {
      if (c == quote) {
        quote = 0;
      } else if (quote == '"' && c == '$') {
        return refused("$");
      } else {
        *word += c;
      }
    } else if (c == '\'' || c == '"') {
      quote = c;
      if (!word) word.emplace();
    } else if (c == ' ' || c == '\t') {
      end_word();
    } else if (rest.starts_with("2>&1") && !word) {
      step.err_to_out = true;
      i += 3;
    } else if (rest.starts_with(">&2") || rest.starts_with("1>&2")) {
      end_word();
      step.out_to_err = true;
      i += c == '1' ? 3 : 2;
    } else if (rest.starts_with("&&") || rest.starts_with("||")) {
      if (!end_step(c == '&' ? When::kAfterSuccess : When::kAfterFailure)) return refused(rest.substr(0, 2));
      ++i;
    } else if (c == ';' || c == '\n') {
      if (!end_step(When::kAlways)) return refused(c == ';' ? ";" : "newline");
    } else if (std::string_view("|&<>$`(){}*?\\").find(c) != std::string_view::npos) {
      return refused(rest.substr(0, 1));
    } else {
      if (!word) word.emplace();
      *word += c;
    }
  }
  if (quote != 0) return refused(std::string_view(&quote, 1));
  if (!end_step(When::kAlways)) return refused("end of line");
  static constexpr std::string_view kWords[] = {"for", "while", "until", "if", "case", "do", "then", "done", "fi"};
  for (const ShellStep& one : out) {
    for (const std::string_view known : kWords) {
      if (one.words[0] == known) return refused(known);
    }
  }
  return out;
}

struct Shell::Running {
  std::vector<ShellStep> steps;
  size_t at = 0;
  std::function<void(const CommandResult&)> tell;
  std::function<void(int, bool)> done;
  bool asking = false, answered = false;  // a command is being begun; it has ended already
};

void Shell::Run(std::string_view line, std::function<void(const CommandResult&)> tell,
                std::function<void(int, bool)> done) {
  absl::StatusOr<std::vector<ShellStep>> steps = ReadShell(line);
  if (!steps.ok()) {
    CommandResult out;
    out.exit_code = code_ = 2;
    out.err = std::string(steps.status().message());
    tell(out);
    return done(code_, false);
  }
  auto running = std::make_shared<Running>();
  running->steps = *std::move(steps);
  running->tell = std::move(tell);
  running->done = std::move(done);
  Go(running);
}

void Shell::Go(const std::shared_ptr<Running>& running) {
  while (running->at < running->steps.size()) {
    const ShellStep& step = running->steps[running->at++];
    if (step.when == ShellStep::When::kAfterSuccess && code_ != 0) continue;
    if (step.when == ShellStep::When::kAfterFailure && code_ == 0) continue;
    if (step.words[0] == "exit") {
      int code = code_;
      if (step.words.size() > 1 && !absl::SimpleAtoi(step.words[1], &code)) code = 2;
      code_ = code & 255;
      return running->done(code_, true);
    }
    const bool plain = !step.out_to_err && !step.err_to_out;
    running->asking = true;
    running->answered = false;
    command_(step.words, [self = shared_from_this(), running, &step, plain](CommandResult result) {
      if (!result.failure.empty()) {
        result = CommandResult();
        result.err = fmt::format("sh: {}: not found\n", step.words[0]);
        result.exit_code = 127;
      }
      if (!plain) {
        std::string& to = step.out_to_err ? result.err : result.out;
        to += std::exchange(step.out_to_err ? result.out : result.err, {});
      }
      self->code_ = result.exit_code;
      running->tell(result);
      // What ends at once goes on in the loop below: a line may have very many commands.
      running->answered = true;
      if (!running->asking) self->Go(running);
    });
    running->asking = false;
    if (!running->answered) return;
  }
  running->done(code_, false);
}

std::string TypedLines::Feed(std::string_view bytes) {
  constexpr char kEndOfText = 3, kEndOfTransmission = 4, kBackspace = 8, kDelete = 127;
  std::string shown;
  for (const char c : bytes) {
    if (c == '\n' || (terminal_ && c == '\r')) {
      AddLine();
      shown += "\r\n";
    } else if (terminal_ && (c == kBackspace || c == kDelete)) {
      if (line_.empty()) continue;
      line_.pop_back();
      shown += "\b \b";
    } else if (terminal_ && c == kEndOfText) {
      line_.clear();
      AddLine();
      shown += "^C\r\n";
    } else if (terminal_ && c == kEndOfTransmission) {
      if (line_.empty()) ended = true;
    } else {
      line_ += c;
      shown += c;
    }
  }
  return terminal_ ? shown : "";
}

void TypedLines::AddLine() {
  waiting_ += line_.size() + 1;
  lines.push_back(std::exchange(line_, {}));
}

std::string TypedLines::Take() {
  std::string line = std::move(lines.front());
  lines.pop_front();
  waiting_ -= line.size() + 1;
  return line;
}

void TypedLines::End() {
  if (!line_.empty()) AddLine();
  ended = true;
}

}  // namespace wavetank::serve
