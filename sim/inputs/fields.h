// The fields of an input, told once for both directions: a reader fills them from JSON, a printer makes JSON of them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "core/base/time.h"
#include "nlohmann/json.hpp"
#include "sim/inputs/input.h"

namespace wavetank::sim {

enum class Need : uint8_t {
  kRequired,  // there, always
  kLenient,   // printed always; what lacks it has the struct's default
  kSparse,    // printed unless it is empty, zero or false
};

class FieldVisitor {
 public:
  virtual ~FieldVisitor() = default;
  virtual void Visit(std::string_view name, Need need, std::string& value) = 0;
  virtual void Visit(std::string_view name, Need need, bool& value) = 0;
  virtual void Visit(std::string_view name, Need need, int64_t& value) = 0;
  virtual void Visit(std::string_view name, Need need, uint64_t& value) = 0;
  virtual void Visit(std::string_view name, Need need, Duration& value) = 0;  // nanoseconds
  virtual void Visit(std::string_view name, Need need, std::vector<std::string>& value) = 0;
  virtual void Visit(std::string_view name, Need need, std::map<std::string, std::string>& value) = 0;
  virtual void Visit(std::string_view name, Need need, nlohmann::json& value) = 0;  // anything; sparse: null
  virtual void Visit(std::string_view name, Need need, std::shared_ptr<const nlohmann::json>& value) = 0;
  // Without a value: absent.
  virtual void Visit(std::string_view name, std::optional<bool>& value) = 0;
  virtual void Visit(std::string_view name, std::optional<int64_t>& value) = 0;
  virtual void Visit(std::string_view name, std::optional<Duration>& value) = 0;
  // A mapping within. `present`: whether there is one; set by a reader, asked by a printer.
  virtual void Mapping(std::string_view name, bool* present, const std::function<void(FieldVisitor&)>& fields) = 0;
  // A list of mappings. `count`: how many there are; set by a reader, asked by a printer. An empty one is left out.
  virtual void Mappings(std::string_view name, size_t* count,
                        const std::function<void(size_t, FieldVisitor&)>& fields) = 0;
  // What is wrong with a value that has the right type, told by a struct that looks closer. A printer ignores it.
  virtual void Refuse(std::string_view name, std::string_view why) = 0;
  // Whether values are being read, so that what follows from them is to be worked out.
  virtual bool reading() const = 0;
};

// InvalidArgument names the input's kind and the field: it is missing, of another type, or none of this kind.
absl::Status ReadFields(std::string_view kind, const nlohmann::json& body,
                        const std::function<void(FieldVisitor&)>& fields);
nlohmann::json PrintFields(const std::function<void(FieldVisitor&)>& fields);
// Whether what PrintFields() makes of them reads back to the same values (core/base/json/json_canonical.h).
bool AreWhatTheirTextSays(const std::function<void(FieldVisitor&)>& fields);

template <InputKind Kind>
void InputTable::Add() {
  rows_.emplace_back(Kind::kKind, [](const nlohmann::json& body) -> absl::StatusOr<Input> {
    Kind what;
    absl::Status status = ReadFields(Kind::kKind, body, [&](FieldVisitor& visitor) { what.Fields(visitor); });
    if (!status.ok()) return status;
    return Input(std::move(what));
  });
}

}  // namespace wavetank::sim
