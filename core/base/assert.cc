#include "core/base/assert.h"

#include <unistd.h>

#include <cstdlib>
#include <vector>

#include "core/base/text/program_call.h"

namespace wavetank::assertion {
namespace {

// The path from the repository's root: this very file says where that lies on the machine that compiled it.
std::string_view FromRoot(std::string_view file) {
  constexpr std::string_view kThis = __FILE__, kFromRoot = "core/base/assert.cc";
  constexpr std::string_view kRoot = kThis.substr(0, kThis.size() - kFromRoot.size());
  return file.starts_with(kRoot) ? file.substr(kRoot.size()) : file;
}

// "a, f(b, c)" as {"a", "f(b, c)"}.
std::vector<std::string> Expressions(std::string_view text) {
  std::vector<std::string> out;
  int depth = 0;
  for (const char c : text) {
    if (c == '(' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == ']' || c == '}') --depth;
    if (out.empty()) out.emplace_back();
    if (c == ',' && depth == 0) {
      out.emplace_back();
    } else if (c != ' ' || !out.back().empty()) {
      out.back() += c;
    }
  }
  return out;
}

std::string Seconds(Time time) {
  const int64_t ns = time.time_since_epoch().count();
  if (ns < 0) return std::to_string(ns) + " ns";
  std::string fraction = std::to_string(ns % 1'000'000'000);
  return std::to_string(ns / 1'000'000'000) + "." + std::string(9 - fraction.size(), '0') + fraction + " s";
}

void Say(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
    if (written <= 0) return;
    text.remove_prefix(static_cast<size_t>(written));
  }
}

// An assertion that fails while another one's last words are spoken says where, and nothing more.
constinit thread_local bool failing = false;

}  // namespace

[[noreturn]] void FailInJson();  // as json_assert.h declares it, which redefines a macro

void Fail(const Place& place, const std::string* shown, size_t count) {
  std::string text = "wavetank: an invariant does not hold: " + std::string(FromRoot(place.file)) + ":" +
                     std::to_string(place.line) + ": " + place.condition + "\n";
  const std::vector<std::string> expressions = Expressions(place.values);
  for (size_t i = 0; i < count && i < expressions.size(); ++i) {
    text += "  " + expressions[i] + " = " + shown[i] + "\n";
  }
  RunContext* const run = current_run;
  if (run != nullptr) {
    text += "  at " + Seconds(run->now()) + " of virtual time, seed " + std::to_string(run->seed()) + "\n";
    if (!run->reproduce().empty()) text += "  the same run again: " + run->reproduce() + "\n";
  }
  if (!ProgramCall().empty()) text += "  called as: " + ProgramCall() + "\n";
  Say(text);
  if (!failing) {
    failing = true;
    if (run != nullptr) {
      for (const RunContext::LastWord& word : run->last_words()) {
        if (const std::string line = word(); !line.empty()) Say("  " + line + "\n");
      }
    }
    Say("  This is a defect of Wavetank, whatever its input was. Report it with these lines.\n");
  }
  std::abort();
}

void FailInJson() { FailWith({"nlohmann/json.hpp", 0, "a JSON value is used as what it is not", ""}); }

}  // namespace wavetank::assertion
