#include "sim/inputs/fields.h"

#include <algorithm>

#include "core/base/json/json_canonical.h"
#include "core/base/json_access.h"
#include "fmt/format.h"

namespace wavetank::sim {
namespace {

using nlohmann::json;

class Reader final : public FieldVisitor {
 public:
  Reader(std::string place, const json& body) : place_(std::move(place)), body_(body) {
    if (!body_.is_object()) Fail("is no mapping");
  }

  void Visit(std::string_view name, Need need, std::string& value) override {
    const json* in = Find(name, need);
    if (in == nullptr) return;
    if (!in->is_string()) return Wrong(name, "text");
    value = in->get_ref<const std::string&>();
  }
  void Visit(std::string_view name, Need need, bool& value) override {
    const json* in = Find(name, need);
    if (in == nullptr) return;
    if (!in->is_boolean()) return Wrong(name, "true or false");
    value = in->get<bool>();
  }
  void Visit(std::string_view name, Need need, int64_t& value) override {
    const json* in = Find(name, need);
    if (in != nullptr) ReadNumber(name, *in, &value);
  }
  void Visit(std::string_view name, Need need, uint64_t& value) override {
    const json* in = Find(name, need);
    if (in == nullptr) return;
    if (!in->is_number_unsigned() && NumberOf(*in, -1) < 0) {
      return Wrong(name, "a whole number that is not negative");
    }
    value = in->get<uint64_t>();
  }
  void Visit(std::string_view name, Need need, Duration& value) override {
    const json* in = Find(name, need);
    int64_t ns = value.count();
    if (in != nullptr && ReadNumber(name, *in, &ns)) value = Duration(ns);
  }
  void Visit(std::string_view name, Need need, std::vector<std::string>& value) override {
    const json* in = Find(name, need);
    if (in == nullptr || in->is_null()) return;
    if (!in->is_array()) return Wrong(name, "a list of texts");
    value.clear();  // what it is if it is left out
    for (const json& item : *in) {
      if (!item.is_string()) return Wrong(name, "a list of texts");
      value.push_back(item.get<std::string>());
    }
  }
  void Visit(std::string_view name, Need need, std::map<std::string, std::string>& value) override {
    const json* in = Find(name, need);
    if (in == nullptr || in->is_null()) return;
    if (!in->is_object()) return Wrong(name, "texts by name");
    for (const auto& [key, text] : in->items()) {
      if (!text.is_string()) return Wrong(name, "texts by name");
      value[key] = text.get<std::string>();
    }
  }
  void Visit(std::string_view name, Need need, json& value) override {
    if (const json* in = Find(name, need); in != nullptr) value = *in;
  }
  void Visit(std::string_view name, Need need, std::shared_ptr<const json>& value) override {
    if (const json* in = Find(name, need); in != nullptr) value = std::make_shared<const json>(*in);
  }
  void Visit(std::string_view name, std::optional<bool>& value) override {
    bool read = false;
    if (!Has(name)) return;
    Visit(name, Need::kRequired, read);
    value = read;
  }
  void Visit(std::string_view name, std::optional<int64_t>& value) override {
    int64_t read = 0;
    if (!Has(name)) return;
    Visit(name, Need::kRequired, read);
    value = read;
  }
  void Visit(std::string_view name, std::optional<Duration>& value) override {
    Duration read{};
    if (!Has(name)) return;
    Visit(name, Need::kRequired, read);
    value = read;
  }
  void Mapping(std::string_view name, bool* present, const std::function<void(FieldVisitor&)>& fields) override {
    *present = Has(name);
    const json* in = Find(name, Need::kLenient);
    if (in == nullptr || !status_.ok()) return;
    Reader inner(fmt::format("{}: {}", place_, name), *in);
    fields(inner);
    status_.Update(inner.Finish());
  }
  void Mappings(std::string_view name, size_t* count,
                const std::function<void(size_t, FieldVisitor&)>& fields) override {
    *count = 0;
    const json* in = Find(name, Need::kLenient);
    if (in == nullptr) return;
    if (!in->is_array()) return Wrong(name, "a list of mappings");
    for (const json& item : *in) {
      if (!status_.ok()) return;
      Reader inner(fmt::format("{}: {}[{}]", place_, name, *count), item);
      fields((*count)++, inner);
      status_.Update(inner.Finish());
    }
  }
  void Refuse(std::string_view name, std::string_view why) override { Fail(fmt::format("field '{}' {}", name, why)); }
  bool reading() const override { return true; }

  absl::Status Finish() {
    if (!status_.ok() || !body_.is_object()) return status_;
    for (const auto& [name, value] : body_.items()) {
      if (std::find(known_.begin(), known_.end(), name) == known_.end()) {
        Fail(fmt::format("field '{}' is unknown; another version of the program wrote it, which can read it", name));
      }
    }
    return status_;
  }

 private:
  bool Has(std::string_view name) { return body_.is_object() && body_.contains(name); }
  const json* Find(std::string_view name, Need need) {
    known_.emplace_back(name);
    if (!body_.is_object()) return nullptr;
    const auto it = body_.find(name);
    if (it != body_.end()) return &*it;
    if (need == Need::kRequired)
      Fail(fmt::format("field '{}' is missing; the log was written by hand or damaged", name));
    return nullptr;
  }
  bool ReadNumber(std::string_view name, const json& in, int64_t* value) {
    const bool fits = in.is_number_integer() && (!in.is_number_unsigned() || in.get<uint64_t>() <= INT64_MAX);
    if (fits) {
      *value = in.get<int64_t>();
    } else {
      Wrong(name, "a whole number of 64 bits");
    }
    return fits;
  }
  void Wrong(std::string_view name, std::string_view what) { Fail(fmt::format("field '{}' is not {}", name, what)); }
  void Fail(std::string_view what) {
    if (status_.ok()) status_ = absl::InvalidArgumentError(fmt::format("{}: {}", place_, what));
  }

  const std::string place_;
  const json& body_;
  std::vector<std::string> known_;
  absl::Status status_;
};

class Printer final : public FieldVisitor {
 public:
  explicit Printer(json* out) : out_(*out) { out_ = json::object(); }

  void Visit(std::string_view name, Need need, std::string& value) override { Put(name, need, value, value.empty()); }
  void Visit(std::string_view name, Need need, bool& value) override { Put(name, need, value, !value); }
  void Visit(std::string_view name, Need need, int64_t& value) override { Put(name, need, value, value == 0); }
  void Visit(std::string_view name, Need need, uint64_t& value) override { Put(name, need, value, value == 0); }
  void Visit(std::string_view name, Need need, Duration& value) override {
    Put(name, need, value.count(), value == Duration::zero());
  }
  void Visit(std::string_view name, Need need, std::vector<std::string>& value) override {
    Put(name, need, value, value.empty());
  }
  void Visit(std::string_view name, Need need, std::map<std::string, std::string>& value) override {
    Put(name, need, value, value.empty());
  }
  void Visit(std::string_view name, Need need, json& value) override { Put(name, need, value, value.is_null()); }
  void Visit(std::string_view name, Need need, std::shared_ptr<const json>& value) override {
    if (value == nullptr) return Put(name, need, nullptr, true);
    Put(name, need, *value, value->is_null());
  }
  void Visit(std::string_view name, std::optional<bool>& value) override {
    if (value) out_[std::string(name)] = *value;
  }
  void Visit(std::string_view name, std::optional<int64_t>& value) override {
    if (value) out_[std::string(name)] = *value;
  }
  void Visit(std::string_view name, std::optional<Duration>& value) override {
    if (value) out_[std::string(name)] = value->count();
  }
  void Mapping(std::string_view name, bool* present, const std::function<void(FieldVisitor&)>& fields) override {
    if (!*present) return;
    Printer inner(&out_[std::string(name)]);
    fields(inner);
  }
  void Mappings(std::string_view name, size_t* count,
                const std::function<void(size_t, FieldVisitor&)>& fields) override {
    if (*count == 0) return;
    json& list = out_[std::string(name)] = json::array();
    for (size_t i = 0; i < *count; ++i) {
      Printer inner(&list.emplace_back());
      fields(i, inner);
    }
  }
  void Refuse(std::string_view, std::string_view) override {}
  bool reading() const override { return false; }

 private:
  template <class Value>
  void Put(std::string_view name, Need need, const Value& value, bool empty) {
    if (need != Need::kSparse || !empty) out_[std::string(name)] = value;
  }
  json& out_;
};

// Numbers of fields are typed; text and free JSON alone may be what no text says.
class TextChecker final : public FieldVisitor {
 public:
  bool holds() const { return holds_; }

  void Visit(std::string_view, Need, std::string& value) override { Check(value); }
  void Visit(std::string_view, Need, bool&) override {}
  void Visit(std::string_view, Need, int64_t&) override {}
  void Visit(std::string_view, Need, uint64_t&) override {}
  void Visit(std::string_view, Need, Duration&) override {}
  void Visit(std::string_view, Need, std::vector<std::string>& value) override {
    for (const std::string& text : value) Check(text);
  }
  void Visit(std::string_view, Need, std::map<std::string, std::string>& value) override {
    for (const auto& [key, text] : value) {
      Check(key);
      Check(text);
    }
  }
  void Visit(std::string_view, Need, json& value) override { holds_ = holds_ && IsWhatItsTextSays(value); }
  void Visit(std::string_view, Need, std::shared_ptr<const json>& value) override {
    holds_ = holds_ && (value == nullptr || IsWhatItsTextSays(*value));
  }
  void Visit(std::string_view, std::optional<bool>&) override {}
  void Visit(std::string_view, std::optional<int64_t>&) override {}
  void Visit(std::string_view, std::optional<Duration>&) override {}
  void Mapping(std::string_view, bool* present, const std::function<void(FieldVisitor&)>& fields) override {
    if (*present) fields(*this);
  }
  void Mappings(std::string_view, size_t* count, const std::function<void(size_t, FieldVisitor&)>& fields) override {
    for (size_t i = 0; i < *count; ++i) fields(i, *this);
  }
  void Refuse(std::string_view, std::string_view) override {}
  bool reading() const override { return false; }

 private:
  void Check(const std::string& text) { holds_ = holds_ && IsWhatItsTextSays(json(text)); }
  bool holds_ = true;
};

}  // namespace

absl::Status ReadFields(std::string_view kind, const json& body, const std::function<void(FieldVisitor&)>& fields) {
  Reader reader(fmt::format("input {}", kind), body);
  fields(reader);
  return reader.Finish();
}

json PrintFields(const std::function<void(FieldVisitor&)>& fields) {
  json out;
  Printer printer(&out);
  fields(printer);
  return out;
}

bool AreWhatTheirTextSays(const std::function<void(FieldVisitor&)>& fields) {
  TextChecker checker;
  fields(checker);
  return checker.holds();
}

}  // namespace wavetank::sim
