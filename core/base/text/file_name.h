// Names of others (clusters, pods) as names of files.
#pragma once

#include <string>
#include <string_view>

namespace wavetank {

// A file's name within a folder for any text: kubeconfigs call clusters `arn:aws:eks:...:cluster/east`, and a log from
// somebody else may call one `../../.bashrc`. A slash, a leading dot, control characters and '%' are percent-encoded,
// what is longer than file systems take is cut and ends with its digest; so other names are other files. What is a
// file's name already stays as it is.
std::string FileName(std::string_view name);

}  // namespace wavetank
