// A value of a document that stands in another's place before it is read: `run --set`, `over:` of a sweep.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace wavetank::scenario {

class Document;

// Below a mapping a path goes on with a field's name, below a list with an item's number from 0 or its `name` (or
// `flow`): "steps.scaled to 3.do.0.scale.replicas". A name with dots that is not there yet stands in double quotes.
struct Setting {
  std::string path;
  std::string value;  // YAML: a word, a number, `{a: b}`

  std::string Text() const { return path + "=" + value; }
};

// "with a=1, b=2: ", before what is wrong beside them; "": there are none.
std::string With(const std::vector<Setting>& settings);

// By which of its fields an item of a list is named.
inline constexpr const char* kItemNames[] = {"name", "flow"};

// "PATH=VALUE". InvalidArgument: it is not.
absl::StatusOr<Setting> ParseSetting(std::string_view text);

// The segments of a path. InvalidArgument: one is empty, or a quote is not closed.
absl::StatusOr<std::vector<std::string>> PathSegments(std::string_view path);

// Puts the value where the path leads; fields on the way that are not there are made, items of lists are not. What it
// makes has no line of the document's. InvalidArgument: the path leads nowhere, or the value is no YAML.
absl::Status Put(const Setting& setting, Document& document);

}  // namespace wavetank::scenario
