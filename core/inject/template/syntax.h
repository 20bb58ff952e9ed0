// The syntax of Go's text/template: a tree of what a template says (Go: text/template/parse).
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/inject/template/value.h"

namespace wavetank::pilot::gotemplate {

struct Pipe;

// One operand, with the fields that follow it: .A.B, $x.C, (pipe).D, a literal, a function's name.
struct Operand {
  enum class Kind : uint8_t { kDot, kVariable, kFunction, kLiteral, kNil, kPipe };
  Kind kind = Kind::kDot;
  std::string name;  // of a variable or a function
  Value literal;
  std::shared_ptr<const Pipe> pipe;
  std::vector<std::string> fields;
  std::string text;  // for messages
};

using Command = std::vector<Operand>;

struct Pipe {
  std::vector<std::string> variables;  // declared or assigned, with their "$"
  bool assigns = false;                // "=" and not ":="
  std::vector<Command> commands;
  int line = 0;
};
using PipeRef = std::shared_ptr<const Pipe>;

struct Node {
  enum class Kind : uint8_t { kText, kAction, kIf, kRange, kWith, kTemplate, kBreak, kContinue };
  Kind kind = Kind::kText;
  std::string text;  // of kText; the name of kTemplate
  PipeRef pipe;      // may be null for kTemplate
  std::vector<Node> body, otherwise;
  int line = 0;
};

struct Tree {
  std::vector<Node> main;
  std::map<std::string, std::vector<Node>> defined;
};

// `functions`: the names that may be called. InvalidArgument in Go's words: "template: inject:12: unexpected ...".
absl::StatusOr<Tree> ParseTemplate(std::string_view name, std::string_view text,
                                   const std::set<std::string>& functions);

}  // namespace wavetank::pilot::gotemplate
