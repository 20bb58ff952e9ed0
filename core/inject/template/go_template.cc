#include "core/inject/template/go_template.h"

#include <optional>
#include <set>
#include <utility>

#include "core/base/status.h"
#include "core/inject/template/syntax.h"
#include "fmt/format.h"

namespace wavetank::pilot {

using gotemplate::Command;
using gotemplate::Node;
using gotemplate::Operand;
using gotemplate::Pipe;
using gotemplate::Value;
using nlohmann::json;

struct GoTemplate::Parsed {
  std::string name;
  gotemplate::Tree tree;
  Functions functions;
};

namespace {

// A template may call itself; what it writes and how often it turns has an end.
constexpr int kMaxCalls = 100, kMaxSteps = 1'000'000;

// One execution.
class Run {
 public:
  Run(const std::string& name, const gotemplate::Tree& tree, const GoTemplate::Functions& functions, Value data)
      : name_(name), tree_(tree), functions_(functions) {
    variables_.emplace_back("$", std::move(data));
  }

  absl::StatusOr<std::string> All() {
    const Value data = variables_.front().second;  // variables move as they become more
    Walk(tree_.main, data);
    if (!status_.ok()) return status_;
    return std::move(out_);
  }

 private:
  enum class Flow : uint8_t { kGoOn, kBreak, kContinue };

  void Fail(int line, std::string_view why) {
    if (!status_.ok()) return;
    status_ = absl::InvalidArgumentError(fmt::format("template: {}:{}: executing \"{}\": {}", name_, line, name_, why));
  }
  bool Step(int line) {
    if (++steps_ > kMaxSteps || out_.size() > GoTemplate::kMaxOutput) {
      if (status_.ok()) {
        status_ = absl::ResourceExhaustedError(fmt::format("template: {}:{}: it does not come to an end", name_, line));
      }
    }
    return status_.ok();
  }

  Flow Walk(const std::vector<Node>& nodes, const Value& dot) {
    for (const Node& node : nodes) {
      if (!Step(node.line)) return Flow::kBreak;
      const Flow flow = One(node, dot);
      if (flow != Flow::kGoOn) return flow;
    }
    return Flow::kGoOn;
  }

  Flow One(const Node& node, const Value& dot) {
    const size_t scope = variables_.size();
    Flow flow = Flow::kGoOn;
    switch (node.kind) {
      case Node::Kind::kText:
        out_ += node.text;
        break;
      case Node::Kind::kAction: {
        // Its variables live on in the list around it.
        const Value value = Evaluate(*node.pipe, dot);
        if (node.pipe->variables.empty() && status_.ok()) out_ += Print(value);
        return flow;
      }
      case Node::Kind::kIf:
      case Node::Kind::kWith: {
        const Value value = Evaluate(*node.pipe, dot);
        if (!status_.ok()) return Flow::kBreak;
        const bool holds = IsTrue(value);
        flow = Walk(holds ? node.body : node.otherwise, holds && node.kind == Node::Kind::kWith ? value : dot);
        break;
      }
      case Node::Kind::kRange:
        Range(node, dot);
        break;
      case Node::Kind::kTemplate:
        Call(node, dot);
        break;
      case Node::Kind::kBreak:
        return Flow::kBreak;
      case Node::Kind::kContinue:
        return Flow::kContinue;
    }
    variables_.resize(scope, {"", Value::None()});
    return flow;
  }

  void Range(const Node& node, const Value& dot) {
    Pipe plain = *node.pipe;
    const std::vector<std::string> names = std::exchange(plain.variables, {});
    const Value over = Evaluate(plain, dot);
    if (!status_.ok()) return;
    if (!over.absent() && over.kind != Value::Kind::kZero && !over.json.is_structured()) {
      return Fail(node.line, "range can't iterate over " + Print(over));
    }
    if (!IsTrue(over)) {
      Walk(node.otherwise, dot);
      return;
    }
    size_t index = 0;
    for (const auto& [key, element] : over.json.items()) {
      const size_t scope = variables_.size();
      const Value value = ElementOf(over, element);
      const Value at = over.json.is_object() ? Value::Plain(key) : Value::Plain(static_cast<int64_t>(index++));
      if (names.size() == 1) Set(names[0], value, plain.assigns, node.line);
      if (names.size() >= 2) {
        Set(names[0], at, plain.assigns, node.line);
        Set(names[1], value, plain.assigns, node.line);
      }
      const Flow flow = Walk(node.body, value);
      variables_.resize(scope, {"", Value::None()});
      if (flow == Flow::kBreak || !status_.ok()) return;
    }
  }

  void Call(const Node& node, const Value& dot) {
    const auto found = tree_.defined.find(node.text);
    if (found == tree_.defined.end()) return Fail(node.line, fmt::format("template \"{}\" not defined", node.text));
    if (++calls_ > kMaxCalls) return Fail(node.line, "exceeded maximum template depth");
    const Value argument = node.pipe == nullptr ? Value::None() : Evaluate(*node.pipe, dot);
    // It sees no variable but its own "$".
    std::vector<std::pair<std::string, Value>> own = {{"$", argument}};
    variables_.swap(own);
    if (status_.ok()) Walk(found->second, argument);
    variables_.swap(own);
    --calls_;
  }

  void Set(const std::string& name, Value value, bool assigns, int line) {
    if (!assigns) {
      variables_.emplace_back(name, std::move(value));
      return;
    }
    for (auto it = variables_.rbegin(); it != variables_.rend(); ++it) {
      if (it->first != name) continue;
      it->second = std::move(value);
      return;
    }
    Fail(line, "undefined variable: " + name);
  }

  Value Evaluate(const Pipe& pipe, const Value& dot) {
    std::optional<Value> value;
    for (const Command& command : pipe.commands) {
      if (!Step(pipe.line)) break;
      value = CommandValue(command, dot, std::move(value), pipe.line);
    }
    Value out = value.value_or(Value::None());
    for (const std::string& name : pipe.variables) Set(name, out, pipe.assigns, pipe.line);
    return out;
  }

  Value CommandValue(const Command& command, const Value& dot, std::optional<Value> last, int line) {
    const Operand& first = command.front();
    if (first.kind != Operand::Kind::kFunction) {
      if (command.size() > 1 || last) Fail(line, fmt::format("can't give argument to non-function {}", first.text));
      return OperandValue(first, dot, line);
    }
    if (first.name == "and" || first.name == "or") return Lazy(command, dot, std::move(last), line);
    std::vector<Value> arguments;
    for (size_t i = 1; i < command.size(); ++i) arguments.push_back(OperandValue(command[i], dot, line));
    if (last) arguments.push_back(*std::move(last));
    return WithFields(Apply(first, arguments, line), first, line);
  }

  // Evaluates no more arguments than it needs.
  Value Lazy(const Command& command, const Value& dot, std::optional<Value> last, int line) {
    const bool stops_at = command.front().name == "or";
    Value out = Value::None();
    for (size_t i = 1; i < command.size() && status_.ok(); ++i) {
      out = OperandValue(command[i], dot, line);
      if (IsTrue(out) == stops_at) return out;
    }
    return last ? *std::move(last) : out;
  }

  Value Apply(const Operand& function, const std::vector<Value>& arguments, int line) {
    if (!status_.ok()) return Value::None();
    absl::StatusOr<Value> out = functions_.at(function.name)(arguments);
    if (out.ok() && out->text() && out->json.get_ref<const std::string&>().size() > GoTemplate::kMaxOutput) {
      Fail(line, "it does not come to an end");
      return Value::None();
    }
    if (out.ok()) return *std::move(out);
    Fail(line, fmt::format("error calling {}: {}", function.name, Message(out.status())));
    return Value::None();
  }

  Value OperandValue(const Operand& operand, const Value& dot, int line) {
    switch (operand.kind) {
      case Operand::Kind::kDot:
        return WithFields(dot, operand, line);
      case Operand::Kind::kVariable:
        for (auto it = variables_.rbegin(); it != variables_.rend(); ++it) {
          if (it->first == operand.name) return WithFields(it->second, operand, line);
        }
        Fail(line, "undefined variable: " + operand.name);
        return Value::None();
      case Operand::Kind::kFunction:
        if (operand.name == "and" || operand.name == "or") {
          Fail(line, fmt::format("wrong number of args for {}: want at least 1 got 0", operand.name));
          return Value::None();
        }
        return WithFields(Apply(operand, {}, line), operand, line);
      case Operand::Kind::kLiteral:
        return operand.literal;
      case Operand::Kind::kNil:
        return Value::None();
      case Operand::Kind::kPipe:
        return WithFields(Evaluate(*operand.pipe, dot), operand, line);
    }
    return Value::None();
  }

  Value WithFields(const Value& value, const Operand& operand, int line) {
    const Value* at = &value;  // so that the whole data of a template is not copied for each of its fields
    Value kept = Value::None();
    for (const std::string& field : operand.fields) {
      if (!status_.ok()) break;
      absl::StatusOr<Value> next = FieldOf(*at, field);
      if (!next.ok()) {
        Fail(line, fmt::format("at <{}>: {}", operand.text, Message(next.status())));
        return Value::None();
      }
      kept = *std::move(next);
      at = &kept;
    }
    return *at;
  }

  const std::string& name_;
  const gotemplate::Tree& tree_;
  const GoTemplate::Functions& functions_;
  std::vector<std::pair<std::string, Value>> variables_;
  std::string out_;
  int calls_ = 0, steps_ = 0;
  absl::Status status_;
};

}  // namespace

absl::StatusOr<GoTemplate> GoTemplate::Parse(std::string_view name, std::string_view text, Functions more) {
  auto parsed = std::make_shared<Parsed>();
  parsed->name = std::string(name);
  // Later ones take the place of earlier ones: the injector's of Sprig's.
  for (Functions some : {gotemplate::BuiltInFunctions(), gotemplate::SprigFunctions(),
                         gotemplate::SprigCollectionFunctions(), gotemplate::InjectorFunctions(), std::move(more)}) {
    for (auto& [function, body] : some) parsed->functions[function] = std::move(body);
  }
  std::set<std::string> names = {"and", "or"};
  for (const auto& [function, body] : parsed->functions) names.insert(function);
  absl::StatusOr<gotemplate::Tree> tree = gotemplate::ParseTemplate(name, text, names);
  if (!tree.ok()) return tree.status();
  parsed->tree = *std::move(tree);
  GoTemplate out;
  out.parsed_ = std::move(parsed);
  return out;
}

absl::StatusOr<std::string> GoTemplate::Execute(const Value& data) const {
  return Run(parsed_->name, parsed_->tree, parsed_->functions, data).All();
}

}  // namespace wavetank::pilot
