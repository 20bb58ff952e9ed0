// Objects as rows of a Table, as an API server prints them for `kubectl get`: columns and cells (priority 1: `-o wide`
// only). kubernetes: pkg/printers/internalversion/printers.go, for custom resources
// apiextensions-apiserver: pkg/registry/customresource/tableconvertor.
#pragma once

#include <cstdint>
#include <string>

#include "core/kube/object.h"
#include "fakes/kube/objects/kinds.h"
#include "nlohmann/json.hpp"

namespace wavetank::fakekube {

// A Table's columnDefinitions for objects of `kind`. `custom` is the additionalPrinterColumns of a custom resource's
// version (null or empty: NAME and AGE); it counts only for kinds that are not Kubernetes' own. A kind of Kubernetes'
// own without columns here has NAME and CREATED AT, as the server's default convertor prints.
nlohmann::json TableColumns(const GroupKind& kind, const nlohmann::json& custom);

// One row's cells, in the columns' order. Ages count to `now_unix_seconds`. An object of a surprising shape has empty
// cells, never an error.
nlohmann::json TableCells(const GroupKind& kind, const nlohmann::json& custom, const kube::Object& object,
                          int64_t now_unix_seconds);

// apimachinery: pkg/util/duration, HumanDuration: "5s", "3m20s", "47h", "12d".
std::string HumanDuration(int64_t seconds);

}  // namespace wavetank::fakekube
