#include "penstock/inspect/class_folder.h"
#include "penstock/inspect/job_text.h"

namespace penstock {

std::string image_job_text(const NewJob& job, const ClassFolder& folder) {
  return class_source(job, folder, "picture") +
         "  // 224 x 224 pixels; the model makes floats of the bytes.\n"
         "  \"fields\": {\n"
         "    \"image\": {\"image\": {\n" +
         file_column(folder) +
         "      \"size\": 224,\n"
         "      // Augmentation, of the training pictures only: another part "
         "of each in\n      // every epoch, 8 to 100 % of its area. Without "
         "this "
         "line: the middle, as\n      // held-out pictures always are.\n"
         "      \"train\": \"random_resized_crop\",\n"
         "      // And half of them mirrored. Remove it where left and right "
         "differ in\n      // meaning, as in letters or road signs.\n"
         "      \"flip\": 0.5}},\n" +
         class_field(folder) + class_batches(folder, "pictures") +
         "  // \"path\": a state_dict of torchvision's resnet18, to begin "
         "with.\n"
         "  \"model\": {\"kind\": \"image_classifier\", \"image\": \"image\",\n"
         "            \"target\": \"class\", \"network\": \"resnet18\"},\n" +
         train_line(folder.rows / 5,
                    "\"epochs\": 20, \"lr\": 0.001, \"warmup_ratio\": 0.1");
}

}  // namespace penstock
