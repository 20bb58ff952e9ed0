#include "core/base/cel/cel_expression.h"

#include <algorithm>
#include <utility>

#include "core/base/cel/cel_functions.h"
#include "core/base/cel/cel_optional.h"
#include "core/base/cel/cel_tree.h"
#include "fmt/format.h"
#include "re2/re2.h"

namespace wavetank::cel {

struct CelExpression::Node {
  enum class Kind : uint8_t { kConstant, kVariable, kSelect, kHas, kCall, kList, kMap, kMacro };
  Kind kind = Kind::kConstant;
  CelFunction function = CelFunction::kNot;  // kCall
  CelValue constant;
  std::string name;  // kVariable, kSelect, kHas; of a kMacro its variable
  enum class Macro : uint8_t {
    kAll,
    kExists,
    kExistsOne,
    kMap,
    kFilter,
    kOptMap,
    kOptFlatMap,
    kTransformMap,
    kTransformMapEntry
  } macro = Macro::kAll;
  std::string second;  // the other variable of a kMacro over pairs; empty: it is none
  std::vector<Node> of;
  std::unique_ptr<const RE2> pattern;  // of kMatches, if it is a constant
};

struct CelExpression::Compiler {
  std::string_view text;
  const CelDialect& dialect;
  absl::Status status;

  Node Compile(const CelNode& from) {
    Node out;
    switch (from.kind) {
      case CelNode::Kind::kLiteral:
        std::visit([&](const auto& literal) { out.constant = {literal}; }, from.literal);
        return out;
      case CelNode::Kind::kName:
        out.kind = Node::Kind::kVariable;
        out.name = from.name;
        if (const auto type = FindType(from.name)) out.constant = {CelType{*type}};
        return out;
      case CelNode::Kind::kMessage:
        return Refuse(from, fmt::format("Invalid struct creation: missing type info for '{}'", from.name));
      case CelNode::Kind::kMacro:
        if (!dialect.macros) return Refuse(from, "Comprehension support is disabled");
        out.kind = Node::Kind::kMacro;
        out.name = from.variable;
        out.macro = from.name == "all"                                      ? Node::Macro::kAll
                    : from.name == "exists"                                 ? Node::Macro::kExists
                    : from.name == "exists_one" || from.name == "existsOne" ? Node::Macro::kExistsOne
                    : from.name == "map" || from.name == "transformList"    ? Node::Macro::kMap
                    : from.name == "transformMap"                           ? Node::Macro::kTransformMap
                    : from.name == "transformMapEntry"                      ? Node::Macro::kTransformMapEntry
                    : from.name == "optMap"                                 ? Node::Macro::kOptMap
                    : from.name == "optFlatMap"                             ? Node::Macro::kOptFlatMap
                                                                            : Node::Macro::kFilter;
        out.second = from.second;
        break;
      case CelNode::Kind::kSelect:
      case CelNode::Kind::kHas:
        out.kind = from.kind == CelNode::Kind::kHas ? Node::Kind::kHas : Node::Kind::kSelect;
        out.name = from.name;
        break;
      case CelNode::Kind::kList:
        out.kind = Node::Kind::kList;
        break;
      case CelNode::Kind::kMap:
        out.kind = Node::Kind::kMap;
        break;
      case CelNode::Kind::kCall: {
        out.kind = Node::Kind::kCall;
        if (const FunctionRow* const row = Qualified(from)) {
          for (size_t i = 1; i < from.of.size(); ++i) out.of.push_back(Compile(from.of[i]));
          out.function = row->is;
          return out;
        }
        for (const CelNode& part : from.of) out.of.push_back(Compile(part));
        const FunctionRow* const row =
            FindFunction(from.name, from.of.size(), from.member, dialect.library, dialect.texts);
        if (row == nullptr) {
          return Refuse(from, dialect.words == CelWords::kCpp
                                  ? fmt::format("No overload found in reference resolve step for {}", from.name)
                                  : fmt::format("undeclared reference to '{}' (in container '')", from.name));
        }
        out.function = row->is;
        if (out.function == CelFunction::kMatches) CompilePattern(from, &out);
        return out;
      }
    }
    for (const CelNode& part : from.of) out.of.push_back(Compile(part));
    return out;
  }

  // A function of a name with a dot: optional.of(...). Null: it is none.
  const FunctionRow* Qualified(const CelNode& call) const {
    if (!call.member || call.of.front().kind != CelNode::Kind::kName) return nullptr;
    return FindFunction(call.of.front().name + "." + call.name, call.of.size() - 1, /*member=*/false, dialect.library,
                        dialect.texts);
  }

  Node Refuse(const CelNode& from, std::string_view what) {
    if (status.ok()) {
      status = absl::FailedPreconditionError(dialect.words == CelWords::kCpp ? std::string(what)
                                                                             : CelErrorAt(text, from.at, what));
    }
    return {};
  }

  void CompilePattern(const CelNode& from, Node* matches) {
    const Node& pattern = matches->of[1];
    const auto* const source = pattern.kind == Node::Kind::kConstant ? pattern.constant.As<std::string>() : nullptr;
    if (source == nullptr) return;
    auto made = std::make_unique<const RE2>(*source, RE2::Quiet);
    if (!made->ok()) {
      Refuse(from, fmt::format("invalid regular expression: {}", made->error()));
    } else if (dialect.largest_program > 0 && made->ProgramSize() > dialect.largest_program) {
      Refuse(from, "regular expression exceeds max allowed size");
    }
    matches->pattern = std::move(made);
  }
};

struct CelExpression::Evaluation {
  const Variables& variables;
  const CelDialect& dialect;
  int64_t* budget;

  // The variables of macros around, the innermost first.
  struct Scope {
    std::string_view name;
    const CelValue& value;
    const Scope* around;
  };

  CelValue Of(const Node& node, const Scope* scope) const {
    if (--*budget < 0) return CelFailure("operation cancelled: actual cost limit exceeded");
    switch (node.kind) {
      case Node::Kind::kConstant:
        return node.constant;
      case Node::Kind::kVariable: {
        for (const Scope* at = scope; at != nullptr; at = at->around) {
          if (at->name == node.name) return at->value;
        }
        CelValue out = variables(node.name);
        return out.failed() && !node.constant.failed() ? node.constant : out;
      }
      case Node::Kind::kSelect: {
        const CelValue of = Of(node.of.front(), scope);
        return of.failed() ? of : CelField(of, CelText(node.name));
      }
      case Node::Kind::kHas: {
        const CelValue of = Of(node.of.front(), scope);
        if (OptionalIn(of) != nullptr) return {OptionalIn(OptionalField(of, CelText(node.name)))->has()};
        const auto* const map = of.As<std::shared_ptr<const CelMap>>();
        if (map == nullptr) return of.failed() ? of : CelValue{};
        return {!(*map)->Get(CelText(node.name)).failed()};
      }
      case Node::Kind::kList: {
        CelList list;
        for (const Node& part : node.of) {
          if (list.emplace_back(Of(part, scope)).failed()) return list.back();
          if (!IsOptionalPart(part)) continue;
          // cel-go: interpreter/interpretable.go, evalList
          const CelValue made = std::move(list.back());
          list.pop_back();
          const CelOptional* const optional = OptionalIn(made);
          if (optional == nullptr) return CelFailure("cannot initialize optional list element from non-optional value");
          if (optional->has()) list.push_back(optional->value());
        }
        return {std::make_shared<const CelList>(std::move(list))};
      }
      case Node::Kind::kMap: {
        std::vector<std::pair<CelValue, CelValue>> entries;
        for (size_t i = 0; i + 1 < node.of.size(); i += 2) {
          entries.emplace_back(Of(node.of[i], scope), Of(node.of[i + 1], scope));
          if (entries.back().first.failed()) return entries.back().first;
          if (entries.back().second.failed()) return entries.back().second;
          if (!IsOptionalPart(node.of[i])) continue;
          const CelValue made = std::move(entries.back().second);
          const CelOptional* const optional = OptionalIn(made);
          if (optional == nullptr) return CelFailure("cannot initialize optional entry from non-optional value");
          optional->has() ? void(entries.back().second = optional->value()) : entries.pop_back();
        }
        return WrittenCelMap(std::move(entries));
      }
      case Node::Kind::kMacro:
        return Macro(node, scope);
      case Node::Kind::kCall:
        return Call(node, scope);
    }
    return {};
  }

  static bool IsOptionalPart(const Node& node) {
    return node.kind == Node::Kind::kCall && node.function == CelFunction::kOptionalPart;
  }

  CelValue Call(const Node& node, const Scope* scope) const {
    const CelFunction f = node.function;
    if (f == CelFunction::kOrOptional || f == CelFunction::kOrValue) {
      const CelValue a = Of(node.of[0], scope);
      const CelOptional* const optional = OptionalIn(a);
      if (optional == nullptr) return a.failed() ? a : CelValue{};
      if (!optional->has()) return Of(node.of[1], scope);
      return f == CelFunction::kOrValue ? optional->value() : a;
    }
    if (f == CelFunction::kAnd ||
        f == CelFunction::kOr) {  // what one side decides holds, whether or not the other fails
      const bool decides = f == CelFunction::kOr;
      const CelValue a = Of(node.of[0], scope);
      if (const bool* is = a.As<bool>(); is != nullptr && *is == decides) return a;
      const CelValue b = Of(node.of[1], scope);
      if (const bool* is = b.As<bool>(); is != nullptr && *is == decides) return b;
      if (a.As<bool>() == nullptr) return a.failed() ? a : CelValue{};
      return b.As<bool>() != nullptr || b.failed() ? b : CelValue{};
    }
    if (f == CelFunction::kIf) {
      const CelValue a = Of(node.of[0], scope);
      const bool* const is = a.As<bool>();
      if (is == nullptr) return a.failed() ? a : CelValue{};
      return Of(node.of[*is ? 1 : 2], scope);
    }
    std::vector<CelValue> of;
    of.reserve(node.of.size());
    for (const Node& part : node.of) {
      if (of.emplace_back(Of(part, scope)).failed()) return of.back();
    }
    if (node.pattern != nullptr) {
      const auto* const text = of.front().As<std::string>();
      return text == nullptr ? CelValue{} : CelValue{RE2::PartialMatch(*text, *node.pattern)};
    }
    return CallFunction(f, of, dialect.library || dialect.texts, dialect.largest_program);
  }

  CelValue Macro(const Node& node, const Scope* scope) const {
    const CelValue range = Of(node.of[0], scope);
    if (range.failed()) return range;
    if (node.macro == Node::Macro::kOptMap || node.macro == Node::Macro::kOptFlatMap) {
      const CelOptional* const optional = OptionalIn(range);
      if (optional == nullptr) return {};
      if (!optional->has()) return range;
      const Scope inner{node.name, optional->value(), scope};
      CelValue said = Of(node.of[1], &inner);
      return said.failed() || node.macro == Node::Macro::kOptFlatMap ? said : MakeOptional(std::move(said));
    }
    if (OptionalIn(range) != nullptr) return {};
    std::vector<CelValue> keys;
    const auto* const list = range.As<std::shared_ptr<const CelList>>();
    if (const auto* map = range.As<std::shared_ptr<const CelMap>>()) {
      keys = (*map)->Keys();
    } else if (list == nullptr) {
      return {};
    }
    const bool decides = node.macro == Node::Macro::kExists;
    const bool asks = node.macro == Node::Macro::kAll || decides;
    int64_t count = 0;
    CelValue undecided = {!decides};
    CelList out;
    std::vector<std::pair<CelValue, CelValue>> entries;
    const bool makes_map = node.macro == Node::Macro::kTransformMap || node.macro == Node::Macro::kTransformMapEntry;
    const bool pairs = !node.second.empty();
    int64_t index = -1;
    for (const CelValue& each : list != nullptr ? **list : keys) {
      ++index;
      // Over pairs: of a list indices and elements, of a map keys and values.
      const CelValue first = pairs && list != nullptr ? CelValue{index} : each;
      const CelValue second = pairs && list == nullptr ? (*range.As<std::shared_ptr<const CelMap>>())->Get(each) : each;
      const Scope of_first{node.name, first, scope};
      const Scope of_second{node.second, second, &of_first};
      const Scope& inner = pairs ? of_second : of_first;
      const bool transforms = (node.macro == Node::Macro::kMap || makes_map) && node.of.size() == 2;
      const CelValue said = transforms ? CelValue{true} : Of(node.of[1], &inner);
      const bool* const is = said.As<bool>();
      if (asks) {  // as of && and ||
        if (is != nullptr && *is == decides) return said;
        if (is == nullptr) undecided = said.failed() ? said : CelValue{};
        if (*budget < 0) return said;
        continue;
      }
      if (is == nullptr) return said.failed() ? said : CelValue{};
      if (!*is) continue;
      ++count;
      if (node.macro == Node::Macro::kFilter) out.push_back(each);
      if (makes_map) {
        CelValue made = Of(node.of.back(), &inner);
        if (made.failed()) return made;
        if (node.macro == Node::Macro::kTransformMap) {
          entries.emplace_back(first, std::move(made));
          continue;
        }
        const auto* const entry = made.As<std::shared_ptr<const CelMap>>();
        if (entry == nullptr) return {};
        for (const CelValue& key : (*entry)->Keys()) {
          const bool twice = std::any_of(entries.begin(), entries.end(),
                                         [&](const auto& e) { return EqualValues(e.first, key).value_or(false); });
          if (twice) return CelFailure("insert failed: key already exists");
          entries.emplace_back(key, (*entry)->Get(key));
        }
        continue;
      }
      if (node.macro != Node::Macro::kMap) continue;
      if (out.emplace_back(Of(node.of.back(), &inner)).failed()) return out.back();
    }
    if (asks) return undecided;
    if (node.macro == Node::Macro::kExistsOne) return {count == 1};
    if (makes_map) return WrittenCelMap(std::move(entries));
    return {std::make_shared<const CelList>(std::move(out))};
  }
};

CelExpression::CelExpression(std::unique_ptr<const Node> root, const CelDialect& dialect)
    : root_(std::move(root)), dialect_(dialect) {}
CelExpression::CelExpression(CelExpression&&) noexcept = default;
CelExpression& CelExpression::operator=(CelExpression&&) noexcept = default;
CelExpression::~CelExpression() = default;

absl::StatusOr<CelExpression> CelExpression::Make(std::string_view text, const CelDialect& dialect) {
  const absl::StatusOr<CelNode> tree = ParseCel(text, dialect.words, /*optionals=*/dialect.library);
  if (!tree.ok()) return tree.status();
  Compiler compiler{text, dialect, absl::OkStatus()};
  auto root = std::make_unique<const Node>(compiler.Compile(*tree));
  if (!compiler.status.ok()) return compiler.status;
  return CelExpression(std::move(root), dialect);
}

CelValue CelExpression::Evaluate(const Variables& variables, int64_t* budget) const {
  return Evaluation{variables, dialect_, budget}.Of(*root_, nullptr);
}

std::vector<std::string> CelExpression::Reads() const {
  std::vector<std::string> out;
  const auto walk = [&](const auto& self, const Node& node) -> void {
    const bool selects = node.kind == Node::Kind::kSelect || node.kind == Node::Kind::kHas;
    const bool indexes = node.kind == Node::Kind::kCall && node.function == CelFunction::kIndex;
    if ((selects || indexes) && node.of.front().kind == Node::Kind::kVariable) {
      const std::string* const key = indexes ? node.of[1].constant.As<std::string>() : &node.name;
      if (key != nullptr) out.push_back(fmt::format("{}.{}", node.of.front().name, *key));
    }
    for (const Node& part : node.of) self(self, part);
  };
  walk(walk, *root_);
  return out;
}

bool CelExpression::Names(std::string_view variable) const {
  const auto walk = [&](const auto& self, const Node& node) -> bool {
    if (node.kind == Node::Kind::kVariable && node.name == variable) return true;
    return std::any_of(node.of.begin(), node.of.end(), [&](const Node& part) { return self(self, part); });
  };
  return walk(walk, *root_);
}

}  // namespace wavetank::cel
