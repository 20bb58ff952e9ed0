// Sprig's functions of lists and dictionaries (Masterminds/sprig v3: list.go, dict.go). None changes what it is given
// but `set` and `unset`, which in Go change the dictionary itself: here they give a changed copy.
#include <algorithm>
#include <utility>

#include "core/inject/template/arguments.h"
#include "core/inject/template/go_template.h"

namespace wavetank::pilot::gotemplate {
namespace {

using nlohmann::json;

// The list itself, with its members' kind.
Value List(json members, const Value& like) {
  return {std::move(members), like.kind == Value::Kind::kStruct ? like.kind : Value::Kind::kPlain};
}

Value Member(const Value& list, bool last) {
  const json& members = ListOf(list);
  if (members.empty()) return Value::None();
  return ElementOf(list, last ? members.back() : members.front());
}

void AddLists(GoTemplate::Functions& out) {
  const auto list = AtLeast(0, [](const Arguments& in) {
    json members = json::array();
    bool structs = false;
    for (const Value& each : in) {
      members.push_back(each.kind == Value::Kind::kZero ? json("") : each.json);
      structs = structs || each.kind == Value::Kind::kStruct;
    }
    return Value{std::move(members), structs ? Value::Kind::kStruct : Value::Kind::kPlain};
  });
  out["list"] = list;
  out["tuple"] = list;
  const auto joined = [](bool front) {
    return Exactly(2, [front](const Arguments& in) {
      json members = ListOf(in[0]);
      const json member = in[1].kind == Value::Kind::kZero ? json("") : in[1].json;
      front ? members.insert(members.begin(), member) : members.insert(members.end(), member);
      const bool structs = in[0].kind == Value::Kind::kStruct || in[1].kind == Value::Kind::kStruct;
      return Value{std::move(members), structs ? Value::Kind::kStruct : Value::Kind::kPlain};
    });
  };
  out["append"] = out["push"] = joined(false);
  out["prepend"] = joined(true);
  out["first"] = Exactly(1, [](const Arguments& in) { return Member(in[0], false); });
  out["last"] = Exactly(1, [](const Arguments& in) { return Member(in[0], true); });
  const auto without_one = [](bool front) {
    return Exactly(1, [front](const Arguments& in) {
      json members = ListOf(in[0]);
      if (!members.empty()) members.erase(front ? 0 : members.size() - 1);
      return List(std::move(members), in[0]);
    });
  };
  out["rest"] = without_one(true);
  out["initial"] = without_one(false);
  out["has"] = Exactly(2, [](const Arguments& in) {
    const json& members = ListOf(in[1]);
    return Value::Plain(std::find(members.begin(), members.end(), in[0].json) != members.end());
  });
  out["without"] = AtLeast(1, [](const Arguments& in) {
    json members = json::array();
    for (const json& member : ListOf(in[0])) {
      const bool kept = std::none_of(in.begin() + 1, in.end(), [&](const Value& each) { return each.json == member; });
      if (kept) members.push_back(member);
    }
    return List(std::move(members), in[0]);
  });
  out["uniq"] = Exactly(1, [](const Arguments& in) {
    json members = json::array();
    for (const json& member : ListOf(in[0])) {
      if (std::find(members.begin(), members.end(), member) == members.end()) members.push_back(member);
    }
    return List(std::move(members), in[0]);
  });
  out["reverse"] = Exactly(1, [](const Arguments& in) {
    json members = ListOf(in[0]);
    std::reverse(members.begin(), members.end());
    return List(std::move(members), in[0]);
  });
  out["sortAlpha"] = Exactly(1, [](const Arguments& in) {
    std::vector<std::string> texts;
    for (const json& member : ListOf(in[0])) texts.push_back(Print(ElementOf(in[0], member)));
    std::sort(texts.begin(), texts.end());
    return Value::Plain(json(texts));
  });
  out["concat"] = AtLeast(1, [](const Arguments& in) {
    json members = json::array();
    for (const Value& each : in) members.insert(members.end(), ListOf(each).begin(), ListOf(each).end());
    return List(std::move(members), in[0]);
  });
  out["until"] = Exactly(1, [](const Arguments& in) {
    json members = json::array();
    for (int64_t i = 0; i < std::min<int64_t>(WholeOf(in[0]), 10'000); ++i) members.push_back(i);
    return Value::Plain(std::move(members));
  });
}

void AddDictionaries(GoTemplate::Functions& out) {
  out["dict"] = AtLeast(0, [](const Arguments& in) {
    json entries = json::object();
    for (size_t i = 0; i < in.size(); i += 2) entries[Print(in[i])] = i + 1 < in.size() ? in[i + 1].json : json("");
    return Value::Plain(std::move(entries));
  });
  out["get"] = Exactly(2, [](const Arguments& in) {
    const auto it = in[0].json.is_object() ? in[0].json.find(Print(in[1])) : in[0].json.end();
    return in[0].json.is_object() && it != in[0].json.end() ? ElementOf(in[0], *it) : Value::Plain("");
  });
  out["hasKey"] = Exactly(
      2, [](const Arguments& in) { return Value::Plain(in[0].json.is_object() && in[0].json.contains(Print(in[1]))); });
  out["set"] = Exactly(3, [](const Arguments& in) {
    Value changed = in[0];
    if (changed.json.is_object()) changed.json[Print(in[1])] = in[2].json;
    return changed;
  });
  out["unset"] = Exactly(2, [](const Arguments& in) {
    Value changed = in[0];
    if (changed.json.is_object()) changed.json.erase(Print(in[1]));
    return changed;
  });
  out["keys"] = AtLeast(1, [](const Arguments& in) {
    json names = json::array();
    for (const Value& each : in) {
      if (!each.json.is_object()) continue;
      for (const auto& [key, value] : each.json.items()) names.push_back(key);
    }
    return Value::Plain(std::move(names));
  });
  out["values"] = Exactly(1, [](const Arguments& in) {
    json members = json::array();
    if (in[0].json.is_object()) members.insert(members.end(), in[0].json.begin(), in[0].json.end());
    return List(std::move(members), in[0]);
  });
  out["pick"] = AtLeast(1, [](const Arguments& in) {
    json kept = json::object();
    for (size_t i = 1; i < in.size(); ++i) {
      const std::string key = Print(in[i]);
      if (in[0].json.is_object() && in[0].json.contains(key)) kept[key] = in[0].json.at(key);
    }
    return Value{std::move(kept), in[0].kind};
  });
  const auto merged = [](bool later_wins) {
    return AtLeast(1, [later_wins](const Arguments& in) {
      json out_of = json::object();
      for (const Value& each : in) {
        if (!each.json.is_object()) continue;
        json next = each.json;
        later_wins ? out_of.merge_patch(next) : next.merge_patch(std::exchange(out_of, json()));
        if (!later_wins) out_of = std::move(next);
      }
      return Value::Plain(std::move(out_of));
    });
  };
  out["merge"] = merged(false);
  out["mergeOverwrite"] = merged(true);
}

}  // namespace

GoTemplate::Functions SprigCollectionFunctions() {
  GoTemplate::Functions out;
  AddLists(out);
  AddDictionaries(out);
  return out;
}

}  // namespace wavetank::pilot::gotemplate
