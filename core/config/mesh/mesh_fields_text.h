// mesh_fields.tsv, built in.
#pragma once

#include <string_view>

namespace wavetank::config {

std::string_view MeshFieldsText();

}  // namespace wavetank::config
