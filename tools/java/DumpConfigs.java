import java.lang.reflect.Field;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.coordinator.group.GroupConfig;
import org.apache.kafka.server.config.AbstractKafkaConfig;
import org.apache.kafka.server.config.DynamicBrokerConfig;
import org.apache.kafka.server.config.QuotaConfig;
import org.apache.kafka.server.metrics.ClientMetricsConfigs;
import org.apache.kafka.storage.internals.log.LogConfig;

/** Prints what Kafka defines about its settings, one tab-separated line each, without its texts. */
public class DumpConfigs {
    public static void main(String[] args) throws Exception {
        Map<String, String> modes = DynamicBrokerConfig.dynamicConfigUpdateModes();
        print("BROKER", AbstractKafkaConfig.CONFIG_DEF, modes);
        print("BROKER_QUOTA", QuotaConfig.brokerQuotaConfigs(), modes);
        print("TOPIC", LogConfig.configDefCopy(), Map.of());
        print("GROUP", GroupConfig.CONFIG_DEF, Map.of());
        print("CLIENT_METRICS", ClientMetricsConfigs.configDef(), Map.of());
        print("CLIENT_QUOTA", QuotaConfig.userAndClientQuotaConfigs(), Map.of());
        print("IP_QUOTA", QuotaConfig.ipConfigs(), Map.of());
    }

    private static void print(String section, ConfigDef definition, Map<String, String> modes)
            throws Exception {
        for (ConfigDef.ConfigKey key : new TreeMap<>(definition.configKeys()).values()) {
            Object value = key.hasDefault() ? key.defaultValue : null;
            String text = value == null ? "\\N" : ConfigDef.convertToString(value, key.type);
            System.out.println(String.join("\t", List.of(section, key.name, key.type.toString(),
                text, allowed(key.validator), key.importance.toString(),
                modes.getOrDefault(key.name, "read-only"),
                key.internalConfig ? "internal" : "")));
        }
    }

    private static String allowed(ConfigDef.Validator validator) throws Exception {
        if (validator == null) {
            return "";
        }
        if (validator instanceof ConfigDef.ValidList) {
            String values = validator.toString();
            return (flag(validator, "isEmptyAllowed") ? "list" : "non-empty list")
                + (values.isEmpty() ? "" : " of " + values);
        }
        switch (validator.getClass().getSimpleName()) {
            case "ControllerQuorumVotersValidator": return "list of id@host:port";
            case "ControllerQuorumBootstrapServersValidator": return "list of host:port";
            case "ThrottledReplicaListValidator": return "list of partition:broker or *";
            default: return validator.toString();
        }
    }

    private static boolean flag(Object owner, String name) throws Exception {
        Field field = owner.getClass().getDeclaredField(name);
        field.setAccessible(true);
        return field.getBoolean(owner);
    }
}
