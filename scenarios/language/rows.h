// What a mapping of the language is, as a row of fields: the parser, the schema for editors and the tables of README.md
// are made of it.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "nlohmann/json.hpp"
#include "scenarios/language/range.h"
#include "scenarios/language/yaml_reader.h"

namespace wavetank::scenario {

struct Scenario;

enum class FieldType : uint8_t {
  kText,
  kCluster,         // the name of one of the scenario's clusters
  kFlow,            // the name of one of its flows
  kNamespacedName,  // namespace/name
  kPath,            // a file or folder, relative to the scenario's own
  kInteger,
  kFlag,
  kDuration,
  kSignedDuration,
  kShare,
  kRate,
  kChoice,
  kTexts,      // a list; one text counts as a list of one
  kClusters,   // a list of names of clusters
  kAddresses,  // a list of IP addresses
  kTextMap,
  kShares,     // shares by name
  kRange,      // of the units that are given
  kMapping,    // another row
  kMappings,   // a list of them
  kManifests,  // a list of paths or of rows `manifest`
  kObject,     // any mapping
  kObjects,    // a list of such
  kTextOrObject,
};

struct FieldRow {
  std::string_view name;
  FieldType type = FieldType::kText;
  std::string_view meaning;
  bool required = false;
  std::vector<std::string_view> choices;  // kChoice
  int64_t low = 0, high = INT64_MAX;      // kInteger; of lists the number of items
  std::vector<Range::Unit> units;         // kRange
  std::string_view row;                   // kMapping, kMappings: the name of the other one

  FieldRow Required() && {
    required = true;
    return std::move(*this);
  }
};

// Fields in short.
namespace row {
FieldRow Text(std::string_view name, std::string_view meaning);
FieldRow Cluster(std::string_view name = "cluster", std::string_view meaning = "Cluster");
FieldRow Named(std::string_view name, std::string_view meaning);  // namespace/name
FieldRow Integer(std::string_view name, int64_t low, int64_t high, std::string_view meaning);
FieldRow Choice(std::string_view name, std::vector<std::string_view> choices, std::string_view meaning);
FieldRow Range(std::string_view name, std::vector<scenario::Range::Unit> units, std::string_view meaning);
FieldRow Mapping(std::string_view name, std::string_view of, std::string_view meaning);
FieldRow Mappings(std::string_view name, std::string_view of, std::string_view meaning);
FieldRow Other(std::string_view name, FieldType type, std::string_view meaning);
}  // namespace row

struct MappingRow {
  std::string_view name, meaning;
  std::vector<FieldRow> fields;
  std::vector<std::string_view> one_of;  // exactly one of these fields is given
  bool single = false;                   // the mapping has one field
  std::string_view bare = {};            // the field that a value that is no mapping stands for; empty: none

  std::vector<std::string_view> Names() const;
};

// A field of a mapping, which may be written as its `bare` field alone.
Field FieldOf(const Field& f, const MappingRow& row, std::string_view name);

// Pods of an app, and a client's own retries: which several rows refer to.
const MappingRow& ClientRow();
const MappingRow& RetriesRow();

// Records the first mistake with `f`'s document: a field that the row does not know, one that is missing or has another
// type. `scenario`: whose clusters and flows may be named; null: not looked at.
void CheckMapping(const Field& f, const MappingRow& row, const Scenario* scenario);

// A mapping's value as JSON, each field in the form of its type: text stays text, whatever it looks like.
nlohmann::json ReadMapping(const Field& f, const MappingRow& row);

// The definition of a row in a JSON schema.
nlohmann::ordered_json SchemaOf(const MappingRow& row);

}  // namespace wavetank::scenario
